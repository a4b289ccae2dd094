// A text that stays long enough to be read.

import { write } from "./elements.js";

/** Minimum time for which a sentence is shown. */
export const READABLE_MS = 1500;

/** Shows sentences in an element; of those that arrive while one is being read, the latest follows it. */
export class PacedText {
  #target;
  #readable;
  #next = null;
  #timer = 0;

  /**
   * @param {HTMLElement} target
   * @param {() => number} [readable] returns the minimum time for which a sentence is shown, in milliseconds
   */
  constructor(target, readable = () => READABLE_MS) {
    this.#target = target;
    this.#readable = readable;
  }

  /** @param {string} text */
  show(text) {
    this.#next = text;
    if (this.#readable() === 0) clearTimeout(this.#timer);
    else if (this.#timer !== 0) return;
    this.#write();
  }

  #write() {
    const text = this.#next;
    this.#next = null;
    const time = text === null || text === "" ? 0 : this.#readable();
    this.#timer = time === 0 ? 0 : setTimeout(() => this.#write(), time);
    if (text !== null) write(this.#target, text);
  }
}
