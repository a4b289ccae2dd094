// Playback, one timer at a time and none while the page is hidden, and its speed.

import { Part } from "./part.js";
import { differs } from "./view_state.js";

/** Limit, in seconds, to which longer pauses are shortened. */
const LONGEST_GAP = 2;
const SLOWEST = 1 / 64;
const FASTEST = 1024;

/** Return the time in seconds to show an event that was followed by another after `gap`. */
export function waitOf(gap, speed) {
  return speed === 0 ? 1 : Math.min(Math.max(gap, 0), LONGEST_GAP) / speed;
}

/** Whether a pause is shortened. */
export function isShortened(gap) {
  return gap > LONGEST_GAP;
}

/** Double or halve a speed; from one event a second, that of the recording. */
export function changedSpeed(speed, isFaster) {
  speed ||= 1;
  return isFaster ? Math.min(speed * 2, FASTEST) : Math.max(speed / 2, SLOWEST);
}

/** Format a speed. */
export function formatSpeed(speed) {
  if (speed === 0) return "1/s";
  return speed < 1 ? `×1/${1 / speed}` : `×${speed}`;
}

/** Minimum time to show an event. */
const LEAST_MS = 10;
/** Number of pictures loaded in advance. */
const AHEAD = 3;

/** Shows the next event when it is due and its picture is loaded. */
export class Playback extends Part {
  #turn = 0;
  #timer = 0;

  constructor(context) {
    super(context);
    this.view.listen((now, before) => {
      if (differs(now, before, "playing", "at", "speed", "table", "as", "filter")) this.#goOn();
    });
    document.addEventListener("visibilitychange", () => this.#goOn());
  }

  async #goOn() {
    const turn = ++this.#turn;
    clearTimeout(this.#timer);
    const { playing, table, as, speed } = this.view.now;
    const { tableEvents, seq } = this.model;
    if (!playing || document.hidden || tableEvents === null) return;
    const began = performance.now();
    try {
      const following = await tableEvents.next(seq);
      if (turn !== this.#turn) return;
      if (following === null || following.seq <= seq) {
        this.#end();
        return;
      }
      const shown = tableEvents.upTo(seq);
      const gap = shown === null ? 0 : following.time - shown.time;
      this.view.update({ notice: speed > 0 && isShortened(gap) ? `${Math.round(gap)} s pause, shortened` : "" });
      this.#prepare(tableEvents, following.seq);
      await this.pictures.at({ table, as, at: following.seq });
      if (turn !== this.#turn) return;
      const left = waitOf(gap, speed) * 1000 - (performance.now() - began);
      this.#timer = setTimeout(
        () => this.view.update({ at: following.seq, message: null }),
        Math.max(left, LEAST_MS),
      );
    } catch (error) {
      if (turn === this.#turn) this.view.update({ playing: false, notice: error.message });
    }
  }

  /** Load further pictures, so that the responses to quick events overlap. */
  async #prepare(tableEvents, seq) {
    const { table, as } = this.view.now;
    try {
      for (let ahead = 1; ahead <= AHEAD; ahead += 1) {
        const event = await tableEvents.next(seq, ahead);
        if (event !== null) await this.pictures.at({ table, as, at: event.seq });
      }
    } catch {
      // The request is repeated when the event is due, and its error is shown then.
    }
  }

  /** Stop at the last event, or follow a live session. */
  #end() {
    const { live, at } = this.view.now;
    this.view.update({ playing: false, at: live ? null : at, notice: "" });
  }
}
