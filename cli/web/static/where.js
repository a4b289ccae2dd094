// Where one is: the one thing from which everything on the page is drawn.

/**
 * @typedef {object} Place
 * @property {number} session which of those that are served
 * @property {number|null} table null as long as there is none
 * @property {number|null} at the number of an event at that table; null is its end, which is followed while it is live
 * @property {string|null} as over whose shoulder one looks; null sees all
 * @property {string} filter
 * @property {string} pane
 * @property {number|null} message the one that was opened; null goes by the event one is at
 * @property {boolean} projector nothing but the table and the latest sentence
 * @property {boolean} several all tables side by side
 * @property {boolean} playing
 * @property {number} speed so many times as fast as it was
 * @property {boolean} live whether it is being recorded
 * @property {string} notice about what was just done
 * @property {string} trouble that lasts: the connection is lost, the recording is behind
 * @property {number} data counts up when something new has come
 * @property {number} held counts up when a relay holds something else
 */

/** The place of one who has just come. */
export const AT_FIRST = Object.freeze({
  session: 1,
  table: null,
  at: null,
  as: null,
  filter: "",
  pane: "events",
  message: null,
  projector: false,
  several: false,
  playing: false,
  speed: 1,
  live: false,
  notice: "",
  trouble: "",
  data: 0,
  held: 0,
});

/** Holds the place, and tells those who listen when it has changed: once for all that changed together. */
export class Where {
  /** @type {Place} */
  now = AT_FIRST;
  #before = null;
  #listeners = [];

  /** @param {(now: Place, before: Place) => void} listener is called soon after a change */
  listen(listener) {
    this.#listeners.push(listener);
  }

  /**
   * Be somewhere else.
   *
   * @param {Partial<Place>} change
   */
  go(change) {
    if (Object.entries(change).every(([name, value]) => this.now[name] === value)) return;
    if (this.#before === null) {
      this.#before = this.now;
      queueMicrotask(() => this.#tell());
    }
    this.now = Object.freeze({ ...this.now, ...change });
  }

  /** Something new has come: what shows it is drawn again. */
  grow() {
    this.go({ data: this.now.data + 1 });
  }

  #tell() {
    const before = this.#before;
    this.#before = null;
    for (const listener of this.#listeners) listener(this.now, before);
  }
}

/**
 * Whether one of these has changed.
 *
 * @param {Place} now
 * @param {Place} before
 * @param {...string} names
 */
export function differs(now, before, ...names) {
  return names.some((name) => now[name] !== before[name]);
}
