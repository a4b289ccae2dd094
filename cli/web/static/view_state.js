// The state of the view, from which everything on the page is drawn.

/**
 * @typedef {object} State
 * @property {number} session number of the session
 * @property {number|null} table null if there is none yet
 * @property {number|null} game number of the game that is drawn, of several at once; null is the latest event's
 * @property {number|null} at number of an event of the table; null is the end, which is followed while live
 * @property {string|null} as the viewer; null sees everything
 * @property {string} filter
 * @property {string} pane
 * @property {number|null} message number of the opened message; null follows the current event
 * @property {boolean} projector only the table and the latest sentence
 * @property {boolean} several all tables side by side
 * @property {boolean} home all sessions
 * @property {boolean} playing
 * @property {number} speed factor of the playback speed; 0 is one event a second
 * @property {boolean} live whether the session is being recorded
 * @property {string} matches how much passes the filter, in words
 * @property {string} notice about the last action
 * @property {string} trouble a lasting problem: lost connection, unreadable session
 * @property {number} data incremented when there are new data
 * @property {number} marks incremented when marks change
 * @property {number} held incremented when held messages change
 */

/** The viewer that sees what all at the table may know. */
export const PUBLIC = "public";

/** The default state. */
export const AT_FIRST = Object.freeze({
  session: 1,
  table: null,
  game: null,
  at: null,
  as: null,
  filter: "",
  matches: "",
  pane: "events",
  message: null,
  projector: false,
  several: false,
  home: false,
  playing: false,
  speed: 1,
  live: false,
  notice: "",
  trouble: "",
  data: 0,
  held: 0,
  marks: 0,
});

/** Holds the state, and notifies listeners of changes, once for all changes made together. */
export class ViewState {
  /** @type {State} */
  now = AT_FIRST;
  #before = null;
  #listeners = [];

  /** @param {(now: State, before: State) => void} listener is called soon after a change */
  listen(listener) {
    this.#listeners.push(listener);
  }

  /**
   * Change the state.
   *
   * @param {Partial<State>} change
   */
  update(change) {
    if (Object.entries(change).every(([name, value]) => this.now[name] === value)) return;
    if (this.#before === null) {
      this.#before = this.now;
      queueMicrotask(() => this.#notify());
    }
    this.now = Object.freeze({ ...this.now, ...change });
  }

  /** Announce new data. */
  notifyData() {
    this.update({ data: this.now.data + 1 });
  }

  #notify() {
    const before = this.#before;
    this.#before = null;
    for (const listener of this.#listeners) listener(this.now, before);
  }
}

/**
 * Whether one of these properties differs.
 *
 * @param {State} now
 * @param {State} before
 * @param {...string} names
 */
export function differs(now, before, ...names) {
  return names.some((name) => now[name] !== before[name]);
}
