// All tables side by side as small drawings with their latest events; selecting one enlarges it.

import { Drawing, Wall } from "./drawing.js";
import { byId, element, svgElement } from "./elements.js";
import { PacedText } from "./announcer.js";
import { Part } from "./part.js";
import { TimelineData } from "./timeline_data.js";
import { differs } from "./view_state.js";

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
        const tiles = [];
        for (const table of this.model.tables) tiles.push(...(await this.#tilesOf(table)));
        this.#arrange(tiles);
        for (const tile of tiles) await this.#drawOne(tile);
      }
    } catch (error) {
      this.view.update({ notice: error.message });
    } finally {
      this.#isAsking = false;
    }
  }

  /** Return the tiles of a table: one for each of several games at once. */
  async #tilesOf({ table, title, server, first, last }) {
    const { as } = this.view.now;
    const at = Math.max(first, Math.min(await this.#seqOf(table, last), last));
    const { games = {} } = await this.pictures.at({ table, as, at });
    const tile = { table, at, game: null, key: `${table}`, name: `${title} ${server}` };
    if (Object.keys(games).length < 2) return [tile];
    return Object.entries(games).map(([game, label]) => ({
      ...tile,
      game: Number(game),
      key: `${table} ${game}`,
      name: this.model.tables.length > 1 ? `${tile.name} · ${label}` : label,
    }));
  }

  #arrange(tiles) {
    const keys = tiles.map(({ key }) => key);
    if ([...this.#small.keys()].join() === keys.join()) return;
    this.#small.clear();
    const buttons = tiles.map(({ table, game, key, name }) => {
      const svg = svgElement("svg", { "aria-hidden": "true", preserveAspectRatio: "xMidYMid meet" });
      const sentence = element("span", { class: "tile-latest" });
      const button = element(
        "button",
        { type: "button", class: "tile", onclick: () => this.navigation.switchTable(table, game) },
        element("span", { class: "tile-title" }, name),
        element("span", { class: "tile-board" }, svg),
        sentence,
      );
      this.#small.set(key, { drawing: new Drawing(svg, this.fragments), text: new PacedText(sentence), shown: null });
      return button;
    });
    this.#grid.replaceChildren(...buttons.map((button) => element("div", {}, button)));
    this.#wall.fit();
    const { table, game } = this.view.now;
    const at = tiles.findIndex((tile) => tile.table === table && (game === null || tile.game === game));
    buttons[Math.max(at, 0)]?.focus();
  }

  async #drawOne({ table, game, key, at }) {
    const { as } = this.view.now;
    const small = this.#small.get(key);
    const shown = JSON.stringify([as, at, this.#wall.shape]);
    if (small === undefined || small.shown === shown) return;
    const picture = await this.pictures.at({ table, as, at, game });
    small.shown = shown;
    small.drawing.show(picture, this.#wall.shape);
    small.text.say(picture.latest);
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
