// Base classes of the panes.

import { element } from "./elements.js";
import { Refresher } from "./refresher.js";

/**
 * @typedef {object} Context
 * @property {import("./source.js").Source} source
 * @property {import("./view_state.js").ViewState} view
 * @property {import("./session_model.js").SessionModel} model
 * @property {import("./navigation.js").Navigation} navigation
 * @property {import("./pictures.js").Pictures} pictures
 * @property {import("./filter_line.js").FilterLine} filterLine
 * @property {import("./held_messages.js").HeldMessages} held
 */

/** A pane of the page. `draw` shows the current state; it is called only while the pane is visible. */
export class Pane {
  /**
   * @param {string} name
   * @param {string} title
   * @param {HTMLElement} root
   * @param {Context} context becomes properties of the pane
   */
  constructor(name, title, root, context) {
    Object.assign(this, context, { name, title, root });
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

  /** A refresher whose errors are shown as a notice. */
  refresher(how) {
    return new Refresher({ failed: (error) => this.view.update({ notice: error.message }), ...how });
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
