// The base class of the page's parts, which work on the same objects.

import { Refresher } from "./refresher.js";

/**
 * @typedef {object} Context
 * @property {import("./source.js").Source} source
 * @property {import("./view_state.js").ViewState} view
 * @property {import("./fragments.js").Fragments} fragments
 * @property {import("./pictures.js").Pictures} pictures
 * @property {import("./session_model.js").SessionModel} model
 * @property {import("./navigation.js").Navigation} navigation
 * @property {import("./announcer.js").Announcer} announcer
 * @property {import("./filter_line.js").FilterLine} filterLine
 * @property {import("./held_messages.js").HeldMessages} held
 */

/** A part of the page. */
export class Part {
  /** @param {Context} context becomes properties of the part; those made later than it are missing */
  constructor(context) {
    Object.assign(this, context);
  }

  /** A refresher whose errors are shown as a notice. */
  refresher(how) {
    return new Refresher({ failed: (error) => this.view.update({ notice: error.message }), ...how });
  }
}
