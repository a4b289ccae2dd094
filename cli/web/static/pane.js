// Base classes of the panes.

import { element } from "./elements.js";
import { Part } from "./part.js";

/** A pane of the page. `draw` shows the current state; it is called only while the pane is visible. */
export class Pane extends Part {
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

  /** False while the pane's tab is hidden. */
  get isAvailable() {
    return true;
  }

  /** The number that `y` copies: that of the current event. */
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
