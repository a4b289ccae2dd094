// Base classes of the panes.

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
      keyOf: () => this.key(),
      ask: (key) => this.load(key),
      failed: (error) => this.failed(error),
      pauseMs: this.pauseMs,
    });
    this.#refresher.refresh();
  }

  /** Show why loading has failed. */
  failed(error) {
    this.view.update({ notice: error.message });
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

/** A pane with a `List`. */
export class ListPane extends Pane {
  list = null;

  constructor(name, title, context) {
    super(name, title, element("div", { class: "pane-body" }), context);
    this.view.listen((now, before) => {
      if (differs(now, before, "marks")) this.list?.renew();
    });
  }

  /**
   * Show a new list of what `load` returns in its `rows`, and return its pages.
   *
   * @param {object} how as for `PagedList` and `List`
   */
  replaceList({ load, rows, ...how }) {
    const paged = new PagedList({
      load: async (params) => {
        const { is_first: isFirst, is_last: isLast, ...found } = await load(params);
        return { items: found[rows], isFirst, isLast };
      },
      ...how,
    });
    this.list = new List({ label: this.title, paged, ...how });
    this.root.replaceChildren(this.list.root);
    return paged;
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
