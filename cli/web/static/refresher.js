// Loading of data that change quickly: one request at a time, always for the latest state.

/** Keeps something up to date; intermediate states are skipped, but never the last. */
export class Refresher {
  #keyOf;
  #ask;
  #failed;
  #pauseMs;
  #done = null;
  #isAsking = false;

  /**
   * @param {object} how
   * @param {() => string|null} how.keyOf returns a key of what to load now; null for nothing
   * @param {(key: string) => Promise<void>} how.ask loads and shows it
   * @param {(error: Error) => void} how.failed
   * @param {number} [how.pauseMs] pause after a response
   */
  constructor({ keyOf, ask, failed, pauseMs = 0 }) {
    this.#keyOf = keyOf;
    this.#ask = ask;
    this.#failed = failed;
    this.#pauseMs = pauseMs;
  }

  /** Load if the key has changed. */
  async refresh() {
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
      // It is tried again at the next change: an immediate retry would fail, too.
      this.#failed(error);
    }
    this.#isAsking = false;
  }
}
