// What plays goes on by itself: one timer at a time, and none while nobody looks.

import { isShortened, waitOf } from "./pace.js";
import { differs } from "./where.js";

/** So long an event is shown at least. */
const LEAST_MS = 10;
/** So many pictures are asked for ahead of time. */
const AHEAD = 3;

/** Shows the next event when it is due, and its picture has come. */
export class Playing {
  #where;
  #watched;
  #pictures;
  #turn = 0;
  #timer = 0;

  /**
   * @param {import("./where.js").Where} where
   * @param {import("./watched.js").Watched} watched
   * @param {import("./pictures.js").Pictures} pictures
   */
  constructor(where, watched, pictures) {
    this.#where = where;
    this.#watched = watched;
    this.#pictures = pictures;
    where.listen((now, before) => {
      if (differs(now, before, "playing", "at", "speed", "table", "as", "filter")) this.#goOn();
    });
    document.addEventListener("visibilitychange", () => this.#goOn());
  }

  async #goOn() {
    const turn = ++this.#turn;
    clearTimeout(this.#timer);
    const { playing, table, as, speed } = this.#where.now;
    const { course, seq } = this.#watched;
    if (!playing || document.hidden || course === null) return;
    const began = performance.now();
    try {
      const following = await course.next(seq);
      if (turn !== this.#turn) return;
      if (following === null || following.seq <= seq) {
        this.#end();
        return;
      }
      const shown = course.upTo(seq);
      const gap = shown === null ? 0 : following.time - shown.time;
      this.#where.go({ notice: isShortened(gap) ? `${Math.round(gap)} s of silence, shortened` : "" });
      this.#prepare(course, following.seq);
      await this.#pictures.at({ table, as, at: following.seq });
      if (turn !== this.#turn) return;
      const left = waitOf(gap, speed) * 1000 - (performance.now() - began);
      this.#timer = setTimeout(
        () => this.#where.go({ at: following.seq, message: null }),
        Math.max(left, LEAST_MS),
      );
    } catch (error) {
      if (turn === this.#turn) this.#where.go({ playing: false, notice: error.message });
    }
  }

  /** Ask for the pictures after the next one: where events come quickly, their answers are on their way together. */
  async #prepare(course, seq) {
    const { table, as } = this.#where.now;
    try {
      for (let ahead = 1; ahead <= AHEAD; ahead += 1) {
        const event = await course.next(seq, ahead);
        if (event !== null) await this.#pictures.at({ table, as, at: event.seq });
      }
    } catch {
      // It is asked again when it is due, and told of then.
    }
  }

  /** That was the last: what is being recorded is followed. */
  #end() {
    const { live, at } = this.#where.now;
    this.#where.go({ playing: false, at: live ? null : at, notice: "" });
  }
}
