// Asking for what changes quickly: one question at a time, and when it is answered the one that is newest by then.

/** Keeps something up to date; what changed meanwhile is left out, never the last. */
export class Latest {
  #keyOf;
  #ask;
  #failed;
  #pauseMs;
  #done = null;
  #isAsking = false;

  /**
   * @param {object} how
   * @param {() => string|null} how.keyOf what is wanted now; null for nothing
   * @param {(key: string) => Promise<void>} how.ask asks for it, and shows it
   * @param {(error: Error) => void} how.failed
   * @param {number} [how.pauseMs] so long nothing is asked after an answer
   */
  constructor({ keyOf, ask, failed, pauseMs = 0 }) {
    this.#keyOf = keyOf;
    this.#ask = ask;
    this.#failed = failed;
    this.#pauseMs = pauseMs;
  }

  /** Something may have changed. */
  async look() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      for (
        let key = this.#keyOf();
        key !== this.#done && key !== null && !document.hidden;
        key = this.#keyOf()
      ) {
        await this.#ask(key);
        this.#done = key;
        if (this.#pauseMs) await new Promise((resolve) => setTimeout(resolve, this.#pauseMs));
      }
    } catch (error) {
      // It is asked again when something changes: at once it would fail again.
      this.#failed(error);
    }
    this.#isAsking = false;
  }
}
