// What a relay holds, for who may act on it: the messages that wait, how long they do, and what is done to them.

import { Latest } from "./latest.js";
import { differs } from "./where.js";

/** Holds what waits, as the server told it last; those who listen are told when it is another. */
export class Held {
  /** Whether there is a relay that can hold. */
  isThere = false;
  mayAct = false;
  /** @type {object[]} */
  messages = [];
  more = 0;
  #source;
  #where;
  #watched;
  #announcer;
  #toldAt = 0;
  #latest;
  #listeners = [];

  /**
   * @param {import("./source.js").Source} source
   * @param {import("./where.js").Where} where
   * @param {import("./watched.js").Watched} watched
   * @param {import("./announcer.js").Announcer} announcer
   */
  constructor(source, where, watched, announcer) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#announcer = announcer;
    this.#latest = new Latest({
      keyOf: () => this.#key(),
      ask: () => this.#ask(),
      failed: (error) => where.go({ notice: error.message }),
    });
    where.listen((now, before) => {
      if (differs(now, before, "held", "session", "as", "live")) this.#look();
    });
    document.addEventListener("visibilitychange", () => this.#look());
  }

  /** @param {() => void} listener is called when others wait */
  listen(listener) {
    this.#listeners.push(listener);
  }

  /** How many wait. */
  get count() {
    return this.messages.length + this.more;
  }

  /** How long a message has waited by now, in seconds. */
  waited(message) {
    return message.waited + (performance.now() - this.#toldAt) / 1000;
  }

  /** Whether somebody has waited for it as long as they do. */
  isOverdue(message) {
    return message.bears !== null && this.waited(message) > message.bears;
  }

  /** Have something done; throws `Refused`. */
  act(deed) {
    return this.#source.act(deed);
  }

  #key() {
    const { held, session, as, live } = this.#where.now;
    return JSON.stringify([held, session, as, live]);
  }

  #look() {
    const { as, live } = this.#where.now;
    // It is told to nobody who sees one player's view.
    if (this.#source.isFile || !live || as !== null || this.#watched.onlyPlayer !== null) this.#take(NOTHING_HELD);
    else this.#latest.look();
  }

  async #ask() {
    const { session } = this.#where.now;
    const found = await this.#source.held();
    const { now } = this.#where;
    if (now.session === session && now.as === null && now.live) this.#take(found);
  }

  #take({ holds, may_act: mayAct, messages, more }) {
    if (!holds && !this.isThere) return;
    const known = new Set(this.messages.map(({ number }) => number));
    this.isThere = holds;
    this.mayAct = mayAct;
    this.messages = messages;
    this.more = more;
    this.#toldAt = performance.now();
    const fresh = messages.findLast(({ number }) => !known.has(number));
    if (fresh) this.#announcer.say(`${fresh.name} from ${fresh.sender} to ${fresh.receiver} is held`);
    for (const listener of this.#listeners) listener();
    this.#where.grow();
  }
}

const NOTHING_HELD = { holds: false, may_act: false, messages: [], more: 0 };
