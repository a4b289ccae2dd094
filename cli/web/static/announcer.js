// Announcements for screen readers: at most one sentence per second; of several, the latest.

import { write } from "./elements.js";

const EVERY_MS = 1000;

/** Announces sentences in a live region. */
export class Announcer {
  #region;
  #timer = 0;
  #waiting = null;
  #spoken = "";

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
    if (sentence === null || sentence === this.#spoken) {
      this.#timer = 0;
      return;
    }
    this.#spoken = sentence;
    write(this.#region, sentence);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      if (this.#waiting !== null) this.#speak();
    }, EVERY_MS);
  }
}
