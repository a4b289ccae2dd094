// Sentences at a pace at which they can be heard and read.

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
