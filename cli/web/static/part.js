// The base class of the page's parts, which work on the same objects, and their way to load data that change quickly.

/** Keeps something up to date; intermediate states are skipped, but never the last. */
export class Refresher {
  #how;
  #done = null;
  #isAsking = false;

  /**
   * @param {object} how
   * @param {() => string|null} how.keyOf returns a key of what to load now; null for nothing
   * @param {(key: string) => Promise<void>} how.ask loads and shows it
   * @param {(error: Error) => void} how.failed
   * @param {number} [how.pauseMs] pause after a response
   */
  constructor(how) {
    this.#how = how;
  }

  /** Load if the key has changed. */
  async refresh() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      for (
        let key = this.#how.keyOf();
        key !== this.#done && key !== null && !document.hidden;
        key = this.#how.keyOf()
      ) {
        await this.#how.ask(key);
        this.#done = key;
        if (this.#how.pauseMs) await new Promise((resolve) => setTimeout(resolve, this.#how.pauseMs));
      }
    } catch (error) {
      // It is tried again at the next change: an immediate retry would fail, too.
      this.#how.failed(error);
    }
    this.#isAsking = false;
  }
}

/**
 * @typedef {object} Context
 * @property {import("./source.js").Source} source
 * @property {import("./view_state.js").ViewState} view
 * @property {import("./fragments.js").Fragments} fragments
 * @property {import("./fragments.js").Pictures} pictures
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
