// All tables side by side as small drawings with their latest events; selecting one enlarges it.

import { Drawing } from "./drawing.js";
import { byId, element, svgElement } from "./elements.js";
import { PacedText } from "./paced_text.js";
import { Part } from "./part.js";
import { TimelineData } from "./timeline_data.js";
import { differs } from "./view_state.js";
import { Wall } from "./wall.js";

/** Interval between two looks at tables whose events are not pushed. */
const LOOK_EVERY_MS = 1000;

/** Shows all tables at the current time. */
export class TableGrid extends Part {
  #grid = byId("several");
  #wall = new Wall(this.#grid, () => this.#show());
  #small = new Map();
  #timelines = new Map();
  #timer = 0;
  #isAsking = false;
  #isStale = false;

  constructor(context) {
    super(context);
    this.view.listen((now, before) => {
      if (differs(now, before, "several", "session", "as", "at", "data", "live")) this.#show();
    });
    document.addEventListener("visibilitychange", () => this.#show());
  }

  #show() {
    const { several, live, at } = this.view.now;
    this.#grid.hidden = !several;
    if (several) this.#wall.fit();
    byId("stage").hidden = several;
    clearTimeout(this.#timer);
    if (!several || document.hidden) return;
    this.#draw();
    if (live && at === null) this.#timer = setTimeout(() => this.#refreshTables(), LOOK_EVERY_MS);
  }

  async #refreshTables() {
    try {
      const { tables } = await this.source.tables();
      this.model.tables = tables;
    } catch {
      // The status line shows the lost connection; the next look tries again.
    }
    this.#show();
  }

  /** Draw all tables; once more if requested meanwhile. */
  async #draw() {
    this.#isStale = true;
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        const { tables } = this.model;
        this.#arrange(tables);
        for (const table of tables) await this.#drawOne(table);
      }
    } catch (error) {
      this.view.update({ notice: error.message });
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
      const sentence = element("span", { class: "tile-latest" });
      const button = element(
        "button",
        { type: "button", class: "tile", onclick: () => this.navigation.switchTable(table) },
        element("span", { class: "tile-title" }, `${title} ${server}`),
        element("span", { class: "tile-board" }, svg),
        sentence,
      );
      this.#small.set(table, { drawing: new Drawing(svg, this.fragments), text: new PacedText(sentence), shown: null });
      return button;
    });
    this.#grid.replaceChildren(...buttons.map((button) => element("div", {}, button)));
    this.#wall.fit();
    buttons[Math.max(numbers.indexOf(this.view.now.table), 0)]?.focus();
  }

  async #drawOne({ table, first, last }) {
    const { as } = this.view.now;
    const at = Math.max(first, Math.min(await this.#seqOf(table, last), last));
    const small = this.#small.get(table);
    const shown = JSON.stringify([as, at, this.#wall.shape]);
    if (small === undefined || small.shown === shown) return;
    const picture = await this.pictures.at({ table, as, at });
    small.shown = shown;
    small.drawing.show(picture, this.#wall.shape);
    small.text.show(picture.latest);
  }

  /** Return the last event of a table at the current time. */
  async #seqOf(table, last) {
    const { at, as, session, table: chosen } = this.view.now;
    const { timeline, seq } = this.model;
    if (at === null || timeline === null) return last;
    if (table === chosen) return seq;
    const key = JSON.stringify([session, table, as]);
    if (!this.#timelines.has(key))
      this.#timelines.set(key, new TimelineData(await this.source.timeline(table, as)));
    return this.#timelines.get(key).seqAt(timeline.secondsAt(seq));
  }
}
