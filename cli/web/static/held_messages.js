// The held messages of a relay, for users with the full view.

import { byId, element, linkButton, write } from "./elements.js";
import { Part } from "./part.js";
import { differs } from "./view_state.js";

/** The latest list of held messages; notifies its listeners when it changes. */
export class HeldMessages extends Part {
  /** Whether there is a relay that can hold messages. */
  isAvailable = false;
  mayAct = false;
  /** @type {object[]} */
  messages = [];
  more = 0;
  #receivedAt = 0;
  #refresher;
  #listeners = [];

  constructor(context) {
    super(context);
    this.#refresher = this.refresher({ keyOf: () => this.#key(), ask: () => this.#ask() });
    this.view.listen((now, before) => {
      if (differs(now, before, "held", "session", "as", "live")) this.#refresh();
    });
    document.addEventListener("visibilitychange", () => this.#refresh());
  }

  /** @param {() => void} listener is called when the list changes */
  listen(listener) {
    this.#listeners.push(listener);
  }

  /** The number of held messages. */
  get count() {
    return this.messages.length + this.more;
  }

  /** Return how long a message has waited by now, in seconds. */
  waited(message) {
    return message.waited + (performance.now() - this.#receivedAt) / 1000;
  }

  /** Whether a message has waited longer than its receiver does. */
  isOverdue(message) {
    return message.bears !== null && this.waited(message) > message.bears;
  }

  /** Carry out an action; throws `Refused`. */
  act(deed) {
    return this.source.act(deed);
  }

  #key() {
    const { held, session, as, live } = this.view.now;
    return JSON.stringify([held, session, as, live]);
  }

  #refresh() {
    const { as, live } = this.view.now;
    // Held messages are not part of a player's view.
    if (this.source.isFile || !live || as !== null || this.model.onlyPlayer !== null) this.#replace(NONE_HELD);
    else this.#refresher.refresh();
  }

  async #ask() {
    const { session } = this.view.now;
    const found = await this.source.held();
    const { now } = this.view;
    if (now.session === session && now.as === null && now.live) this.#replace(found);
  }

  #replace({ holds, may_act: mayAct, messages, more }) {
    if (!holds && !this.isAvailable) return;
    const known = new Set(this.messages.map(({ number }) => number));
    this.isAvailable = holds;
    this.mayAct = mayAct;
    this.messages = messages;
    this.more = more;
    this.#receivedAt = performance.now();
    const newest = messages.findLast(({ number }) => !known.has(number));
    if (newest) this.announcer.say(`${newest.name} from ${newest.sender} to ${newest.receiver} is held`);
    for (const listener of this.#listeners) listener();
    this.view.notifyData();
  }
}

const NONE_HELD = { holds: false, may_act: false, messages: [], more: 0 };

/** Interval between two updates of the waiting time. */
export const HELD_TICK_MS = 100;

/** Format the waiting time of a message. */
export function formatWaited(held, message) {
  return `${held.waited(message).toFixed(1)} s`;
}

/** Shows the line, except in the public view of a projector; its button opens the list. */
export class HeldStrip extends Part {
  #root = byId("held-strip");
  #time = element("b", { class: "held-time" });
  #words = element("span");
  #too = element("b", { class: "held-late" });
  #more = element("span");
  #timer = 0;

  /**
   * @param {import("./part.js").Context} context
   * @param {() => void} show opens the list
   */
  constructor(context, show) {
    super(context);
    const button = linkButton("act on it", show);
    this.#root.append(this.#words, " ", this.#time, " ", this.#too, " ", this.#more, " ", button);
    this.held.listen(() => this.#show());
  }

  #show() {
    const { messages, count, mayAct } = this.held;
    this.#root.hidden = count === 0;
    this.#root.querySelector("button").textContent = mayAct ? "act on it" : "show it";
    clearInterval(this.#timer);
    if (messages.length === 0) return;
    write(this.#more, count > 1 ? `${count - 1} more` : "");
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), HELD_TICK_MS);
  }

  #tick() {
    // An overdue message comes before the oldest one.
    const { messages } = this.held;
    const message = messages.find((one) => this.held.isOverdue(one)) ?? messages[0];
    const isOverdue = this.held.isOverdue(message);
    write(this.#words, `held: ${message.name} from ${message.sender} to ${message.receiver},`);
    write(this.#time, formatWaited(this.held, message));
    write(this.#too, isOverdue ? message.patience : "");
    this.#root.classList.toggle("is-late", isOverdue);
  }
}
