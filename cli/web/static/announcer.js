// What a screen reader is told of what happens: not more than one sentence a second, and of several the last.

import { write } from "./elements.js";

const EVERY_MS = 1000;

/** Says sentences in a live region. */
export class Announcer {
  #region;
  #timer = 0;
  #waiting = null;
  #said = "";

  /** @param {HTMLElement} region */
  constructor(region) {
    this.#region = region;
  }

  /** @param {string} sentence */
  say(sentence) {
    this.#waiting = sentence;
    if (this.#timer === 0) this.#speak();
  }

  #speak() {
    const sentence = this.#waiting;
    this.#waiting = null;
    if (sentence === null || sentence === this.#said) {
      this.#timer = 0;
      return;
    }
    this.#said = sentence;
    write(this.#region, sentence);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      if (this.#waiting !== null) this.#speak();
    }, EVERY_MS);
  }
}
