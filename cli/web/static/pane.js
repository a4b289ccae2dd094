// Base classes of the panes.

import { Columns } from "./columns.js";
import { element } from "./elements.js";
import { List } from "./list.js";
import { PagedList } from "./paged_list.js";
import { Part } from "./part.js";
import { differs } from "./view_state.js";

/** A pane of the page. `draw` is called only while the pane is visible; it loads what `key` stands for with `load`. */
export class Pane extends Part {
  /** Pause in milliseconds between two requests while the session is live. */
  pauseMs = 0;
  #refresher = null;

  /**
   * @param {string} name
   * @param {string} title
   * @param {HTMLElement} root
   * @param {import("./part.js").Context} context
   */
  constructor(name, title, root, context) {
    super(context);
    Object.assign(this, { name, title, root });
  }

  /** Show the current state. */
  draw() {
    this.#refresher ??= this.refresher({
      // A hidden pane's list may be that of another session.
      keyOf: () => (this.root.checkVisibility() ? this.key() : null),
      ask: (key) => this.load(key),
      failed: (error) => this.failed(error),
      pauseMs: this.pauseMs,
    });
    this.#refresher.refresh();
  }

  /** Show why loading has failed. */
  failed(error) {
    this.view.update({ notice: error.message });
    if (!this.root.hasChildNodes()) this.root.append(element("p", { class: "nothing" }, error.message));
  }

  /** False while the pane's tab is hidden. */
  get isAvailable() {
    return true;
  }

  /** The kind of what `reference` numbers: `event` or `message`. */
  get kind() {
    return "event";
  }

  /** The number that `y` copies, and `m` marks: that of the current event. */
  get reference() {
    return this.model.event?.number ?? null;
  }

  /** Handle a key in the list of the pane; return whether it did anything. */
  press() {
    return false;
  }
}

/** Number of rows of a sorted list that are loaded at a time. */
const SORTED_ROWS = 200;

/** A pane with a `List`, whose columns may sort: then the list is loaded in this order. */
export class ListPane extends Pane {
  list = null;
  paged = null;
  columns = null;
  #cells;

  /**
   * @param {Record<string, {sort?: string, kind?: string, of: Function}>} [cells] by column the data source's name of
   *   its order, the class of its cells, and what returns the content of one
   * @param {object} [how] as for `Columns`
   */
  constructor(name, title, context, cells = {}, how = {}) {
    super(name, title, element("div", { class: "pane-body" }), context);
    this.#cells = cells;
    const names = Object.keys(cells);
    if (names.length) {
      this.columns = new Columns(title, names, how);
      this.columns.changed = () => {
        this.list?.renew();
        this.draw();
      };
    }
    this.view.listen((now, before) => {
      if (differs(now, before, "marks")) this.list?.renew();
    });
  }

  /** The order as the data source names it; empty for the natural one. */
  get sort() {
    const order = this.columns?.order ?? "";
    return order && order.replace(/[^-]+/, (name) => this.#cells[name].sort);
  }

  /**
   * Show a new list of what `load` returns in its `rows`, or of `paged`.
   *
   * @param {object} how as for `PagedList` and `List`; `markOf` returns the mark of an item
   */
  replaceList({ load, rows, paged, markOf = () => "", ...how }) {
    const { sort } = this;
    const loadRows = async ({ before, ...params }) => {
      // The rows of a sorted list have their places as keys.
      const { after = 0, limit = SORTED_ROWS } = params;
      const from = before === undefined ? after : Math.max(0, before - 1 - limit);
      const place = { sort, after: from, limit: before === undefined ? limit : before - 1 - from };
      const { is_first: isFirst, is_last: isLast, ...found } = await load(sort ? place : { before, ...params });
      const items = sort ? found[rows].map((item, at) => ({ ...item, place: from + at + 1 })) : found[rows];
      return { items, isFirst, isLast };
    };
    const keyOf = sort ? ({ place }) => place : how.keyOf;
    this.paged = paged ?? new PagedList({ ...how, load: loadRows, keyOf });
    const about = (name) => ({ role: "columnheader", class: name === "time" ? "row-time" : null });
    const headsOf = this.columns && (() => this.columns.heads("div", about, (name) => this.#cells[name].sort));
    const rowOf = (item) => this.#row(item, markOf(item));
    this.list = new List({ label: this.title, paged: this.paged, rowOf, headsOf, ...how });
    this.root.replaceChildren(this.list.root, this.columns?.choice ?? "");
  }

  /** Load a sorted list; when rows have arrived, its loaded part again. */
  async loadSorted() {
    const { items, isLoaded } = this.paged;
    const limit = Math.max(items.length, SORTED_ROWS);
    await this.paged.reload({ after: (items[0]?.place ?? 1) - 1, limit });
    if (!isLoaded) this.list.root.scrollTop = 0;
  }

  /** Return the cells of a row: those between the time and the number together. */
  #row(item, mark) {
    const cells = this.columns.shown.map((name) => {
      const { kind = "row-main", of } = this.#cells[name];
      return element("span", { role: "gridcell", class: kind }, ...of(item));
    });
    const [time, id] = ["row-time", "row-id"].map((kind) => cells.find(({ className }) => className === kind) ?? "");
    const main = cells.filter((cell) => cell !== time && cell !== id);
    const note = mark && element("b", { role: "gridcell", class: "row-mark" }, mark);
    return [time, element("div", { class: "row-text" }, ...main, note), id];
  }

  press(event) {
    return this.list?.press(event) ?? false;
  }

  /** Show a sentence instead of a list. */
  showNothing(sentence) {
    this.list = null;
    this.root.replaceChildren(element("p", { class: "nothing" }, sentence));
  }
}

/** A scrolled region that the keyboard can reach. */
export function scrolledRegion(label) {
  return element("div", { class: "pane-body is-scrolled", tabindex: 0, role: "region", "aria-label": label });
}
