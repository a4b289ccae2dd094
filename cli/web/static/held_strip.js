// The line above the table about held messages: the overdue or oldest one, and its waiting time.

import { byId, element, linkButton, write } from "./elements.js";
import { Part } from "./part.js";

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
