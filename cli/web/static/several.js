// Several tables side by side, each in a small drawing with its latest event below; one that is chosen is enlarged.

import { Drawing } from "./drawing.js";
import { byId, element, svgElement, write } from "./elements.js";
import { TimelineData } from "./timeline_data.js";
import { differs } from "./where.js";

/** So often those are looked at whose events are not told by themselves. */
const LOOK_EVERY_MS = 1000;

/** Shows all tables at the moment one is at. */
export class Several {
  #source;
  #where;
  #watched;
  #moves;
  #pictures;
  #fragments;
  #grid = byId("several");
  #small = new Map();
  #timelines = new Map();
  #timer = 0;
  #isAsking = false;
  #isStale = false;

  constructor({ source, where, watched, moves, pictures }, fragments) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#moves = moves;
    this.#pictures = pictures;
    this.#fragments = fragments;
    where.listen((now, before) => {
      if (differs(now, before, "several", "session", "as", "at", "data", "live")) this.#show();
    });
    document.addEventListener("visibilitychange", () => this.#show());
  }

  #show() {
    const { several, live, at } = this.#where.now;
    this.#grid.hidden = !several;
    byId("stage").hidden = several;
    clearTimeout(this.#timer);
    if (!several || document.hidden) return;
    this.#draw();
    if (live && at === null) this.#timer = setTimeout(() => this.#look(), LOOK_EVERY_MS);
  }

  async #look() {
    try {
      const { tables } = await this.#source.tables();
      this.#watched.tables = tables;
    } catch {
      // The line below says that the connection is lost; it is looked again.
    }
    this.#show();
  }

  /** Draw all of them; asked meanwhile, once more. */
  async #draw() {
    this.#isStale = true;
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        const { tables } = this.#watched;
        this.#arrange(tables);
        for (const table of tables) await this.#drawOne(table);
      }
    } catch (error) {
      this.#where.go({ notice: error.message });
    } finally {
      this.#isAsking = false;
    }
  }

  #arrange(tables) {
    const numbers = tables.map(({ table }) => table);
    if ([...this.#small.keys()].join() === numbers.join()) return;
    this.#small.clear();
    const buttons = tables.map(({ table, title, server }) => {
      const svg = svgElement("svg", { "aria-hidden": "true", preserveAspectRatio: "xMidYMid meet" });
      const sentence = element("span", { class: "small-sentence" });
      const name = element("span", { class: "small-name" }, `${title} ${server}`);
      const button = element(
        "button",
        { type: "button", class: "small", onclick: () => this.#moves.lookAt(table) },
        svg,
        name,
        sentence,
      );
      this.#small.set(table, { drawing: new Drawing(svg, this.#fragments), sentence, shown: null });
      return button;
    });
    this.#grid.replaceChildren(...buttons);
    buttons[Math.max(numbers.indexOf(this.#where.now.table), 0)]?.focus();
  }

  async #drawOne({ table, first, last }) {
    const { as } = this.#where.now;
    const at = Math.max(first, Math.min(await this.#seqOf(table, last), last));
    const small = this.#small.get(table);
    const shown = JSON.stringify([as, at]);
    if (small === undefined || small.shown === shown) return;
    const picture = await this.#pictures.at({ table, as, at });
    small.shown = shown;
    small.drawing.show(picture, "wide");
    write(small.sentence, picture.latest);
  }

  /** The last event of a table by this moment. */
  async #seqOf(table, last) {
    const { at, as, session, table: chosen } = this.#where.now;
    const { timeline, seq } = this.#watched;
    if (at === null || timeline === null) return last;
    if (table === chosen) return seq;
    const key = JSON.stringify([session, table, as]);
    if (!this.#timelines.has(key))
      this.#timelines.set(key, new TimelineData(await this.#source.timeline(table, as)));
    return this.#timelines.get(key).seqAt(timeline.secondsAt(seq));
  }
}
