// Sentences at a pace at which they can be heard and read.

import { write } from "./elements.js";

/** Minimum time for which a sentence is shown. */
export const READABLE_MS = 1500;
/** Minimum time for which an announced sentence stays, and that of a notice for each letter, to be heard in full. */
const HEARD_MS = 1000;
const LETTER_MS = 60;

/** Shows sentences in an element; of those that arrive while one is being read, the latest follows it. */
export class PacedText {
  #target;
  #readable;
  #next = null;
  #timer = 0;

  /**
   * @param {HTMLElement} target
   * @param {(text: string) => number} [readable] returns the minimum time for which a sentence is shown, in milliseconds
   */
  constructor(target, readable = () => READABLE_MS) {
    this.#target = target;
    this.#readable = readable;
  }

  /** The sentence that waits; null if there is none. */
  get next() {
    return this.#next;
  }

  /** @param {string} text */
  say(text) {
    this.#next = text;
    if (this.#readable(text) === 0) clearTimeout(this.#timer);
    else if (this.#timer !== 0) return;
    this.#write();
  }

  #write() {
    const text = this.#next;
    this.#next = null;
    const time = text ? this.#readable(text) : 0;
    this.#timer = time === 0 ? 0 : setTimeout(() => this.#write(), time);
    if (text !== null) write(this.#target, text);
  }
}

/** Announces sentences in a live region: notices stay until they are heard, and are not left out. */
export class Announcer extends PacedText {
  #notice = "";

  /** @param {HTMLElement} region */
  constructor(region) {
    super(region, (text) => (text === this.#notice ? Math.max(HEARD_MS, text.length * LETTER_MS) : HEARD_MS));
  }

  /** @param {string} sentence */
  say(sentence) {
    const isNoticeWaiting = this.next !== null && this.next === this.#notice;
    super.say(isNoticeWaiting ? (this.#notice = `${this.#notice}. ${sentence}`) : sentence);
  }

  /** @param {string} notice about what the user has just done */
  tell(notice) {
    this.#notice = notice;
    super.say(notice);
  }
}
