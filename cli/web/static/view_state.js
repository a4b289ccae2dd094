// The state of the view, from which everything on the page is drawn.

/** The viewer that sees what all at the table may know. */
export const PUBLIC = "public";

/** The default state, with the meaning of each property and of null. @typedef {typeof AT_FIRST} State */
export const AT_FIRST = Object.freeze({
  session: 1, // number of the session
  table: null, // null if there is none yet
  game: null, // number of the game that is drawn, of several at once; null is the latest event's
  at: null, // number of an event of the table; null is the end, which is followed while live
  as: null, // the viewer; null sees everything
  seat: null, // the player whose seat is the first one of the board; null is the protocol's order
  filter: "",
  matches: "", // how much passes the filter, in words
  pane: "events",
  message: null, // number of the opened message; null follows the current event
  projector: false, // only the table and the latest sentence
  several: false, // all tables side by side
  home: false, // all sessions
  playing: false,
  speed: 1, // factor of the playback speed; 0 is one event a second
  live: false, // whether the session is being recorded
  notice: "", // about the last action
  trouble: "", // a lasting problem: lost connection, unreadable session
  data: 0, // incremented when there are new data
  held: 0, // incremented when held messages change
  marks: 0, // incremented when marks change
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
