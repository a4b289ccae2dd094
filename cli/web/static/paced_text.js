// A text that stays long enough to be read.

import { write } from "./elements.js";

/** Minimum time for which a sentence is shown. */
export const READABLE_MS = 1500;

/** Shows sentences in an element; of those that arrive while one is being read, the latest follows it. */
export class PacedText {
  #target;
  #next = null;
  #timer = 0;

  /** @param {HTMLElement} target */
  constructor(target) {
    this.#target = target;
  }

  /** @param {string} text */
  show(text) {
    this.#next = text;
    if (this.#timer === 0) this.#write();
  }

  #write() {
    const text = this.#next;
    this.#next = null;
    this.#timer = text === null || text === "" ? 0 : setTimeout(() => this.#write(), READABLE_MS);
    if (text !== null) write(this.#target, text);
  }
}
