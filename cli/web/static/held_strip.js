// The line above the table that says that something waits: what, for how long, and that it is too long.

import { byId, element, write } from "./elements.js";

/** So often the time is shown that a message has waited. */
export const HELD_TICK_MS = 100;

/** How long a message has waited, in words. */
export function waitedWords(held, message) {
  return `${held.waited(message).toFixed(1)} s`;
}

/** Shows it, also on a projector; its button leads to the list. */
export class HeldStrip {
  #held;
  #root = byId("held-strip");
  #time = element("b", { class: "held-time" });
  #words = element("span");
  #too = element("b", { class: "held-late" });
  #more = element("span");
  #timer = 0;

  /**
   * @param {import("./where.js").Where} where
   * @param {import("./held.js").Held} held
   * @param {() => void} show leads to the list
   */
  constructor(where, held, show) {
    this.#held = held;
    const button = element("button", { type: "button", class: "link", onclick: show }, "act on it");
    this.#root.append(this.#words, " ", this.#time, " ", this.#too, " ", this.#more, " ", button);
    held.listen(() => this.#show());
  }

  #show() {
    const { messages, count, mayAct } = this.#held;
    this.#root.hidden = count === 0;
    this.#root.querySelector("button").textContent = mayAct ? "act on it" : "show it";
    clearInterval(this.#timer);
    if (messages.length === 0) return;
    write(this.#more, count > 1 ? `${count - 1} more` : "");
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), HELD_TICK_MS);
  }

  #tick() {
    // What has waited for too long comes before what has waited longest.
    const { messages } = this.#held;
    const message = messages.find((one) => this.#held.isOverdue(one)) ?? messages[0];
    const isOverdue = this.#held.isOverdue(message);
    write(this.#words, `held: ${message.name} from ${message.sender} to ${message.receiver},`);
    write(this.#time, waitedWords(this.#held, message));
    write(this.#too, isOverdue ? message.patience : "");
    this.#root.classList.toggle("is-late", isOverdue);
  }
}
