// How one moves: what the keys, the buttons and the timeline do.

import { changedSpeed } from "./pace.js";
import { TimelineData } from "./timeline_data.js";
import { differs } from "./where.js";

/** Moves one about in what is watched; each move begins when the one before has come to its end. */
export class Moves {
  #where;
  #watched;
  #source;
  #last = Promise.resolve();
  /** The flaw one was led to, and the event one is at since then: the first, if it was before that. */
  #flaw = null;

  /**
   * @param {import("./where.js").Where} where
   * @param {import("./watched.js").Watched} watched
   * @param {import("./source.js").Source} source
   */
  constructor(where, watched, source) {
    this.#where = where;
    this.#watched = watched;
    this.#source = source;
  }

  /** At an event of this table, by its number; then it neither follows nor plays. */
  beAt(seq, change = {}) {
    this.#flaw = null;
    this.#where.go({ at: seq, playing: false, message: null, notice: "", ...change });
  }

  /** So many events further on, or back. */
  step(by) {
    this.#inTurn(async () => {
      const { course, seq } = this.#watched;
      const found = await course?.next(seq, by);
      if (found) this.beAt(found.seq);
      // Who goes back from where nothing is before it stops following all the same.
      else if (course) this.beAt(seq);
    });
  }

  /** At the beginning of the next game; or of this one or the one before. */
  game(by) {
    this.#inTurn(() => {
      const { timeline, seq } = this.#watched;
      const found = timeline?.gameBeside(seq, by) ?? null;
      if (found !== null) this.beAt(found);
      else this.#where.go({ notice: by > 0 ? "that was the last game" : "that was the first game" });
    });
  }

  /** At the first event. */
  begin() {
    this.#inTurn(async () => {
      const found = await this.#watched.course?.end("first");
      if (found) this.beAt(found.seq);
    });
  }

  /** At the last event; what is being recorded is followed. */
  end() {
    this.#inTurn(async () => {
      if (this.#where.now.live) {
        this.beAt(null);
        return;
      }
      const found = await this.#watched.course?.end("last");
      if (found) this.beAt(found.seq);
    });
  }

  /** At the next error, or the one before. */
  error(by) {
    this.#inTurn(() => this.#error(by));
  }

  /** Play, or pause. */
  play() {
    this.#inTurn(() => this.#play());
  }

  #error(by) {
    const { timeline, seq } = this.#watched;
    if (timeline === null) return;
    const errors = timeline.flaws.filter(({ severity }) => severity === "error");
    const shown = this.#flaw?.at === seq ? this.#flaw : null;
    const isBehind = (flaw) =>
      shown ? isAfter(flaw, shown) : flaw.seq > seq || (seq <= timeline.begin && by > 0);
    const isBefore = (flaw) => (shown ? isAfter(shown, flaw) : flaw.seq < seq);
    const found = by > 0 ? errors.find(isBehind) : errors.findLast(isBefore);
    if (found === undefined) {
      const side = `no error ${by > 0 ? "after" : "before"} this ${shown ? "one" : "event"}`;
      this.#where.go({ notice: errors.length ? side : "there are no errors" });
      return;
    }
    const at = Math.max(found.seq, timeline.begin);
    this.beAt(at);
    this.#flaw = { ...found, at };
    return this.#tell(found);
  }

  #play() {
    const { playing, at, live } = this.#where.now;
    const { timeline, seq } = this.#watched;
    if (timeline === null) return;
    if (playing || (live && at === null)) this.#where.go({ playing: false, at: seq, notice: "" });
    else if (seq >= timeline.last && live) this.beAt(null);
    else
      this.#where.go({
        at: seq >= timeline.last ? timeline.begin : seq,
        playing: true,
        message: null,
        notice: "",
      });
  }

  /** Twice as fast, or half as fast. */
  pace(isFaster) {
    this.#where.go({ speed: changedSpeed(this.#where.now.speed, isFaster) });
  }

  /** Look at another table, at the same moment. */
  lookAt(table) {
    this.#inTurn(async () => {
      const { at, as } = this.#where.now;
      const { timeline, seq } = this.#watched;
      const change = { table, several: false, message: null, notice: "", playing: false };
      if (at !== null && timeline !== null) {
        const other = new TimelineData(await this.#source.timeline(table, as));
        change.at = Math.max(other.seqAt(timeline.secondsAt(seq)), other.begin);
      }
      this.#where.go(change);
    });
  }

  /** Open a message; and be at the event that it tells of. */
  open(number) {
    this.#where.go({ message: number, pane: "message", playing: false, notice: "" });
    this.#inTurn(async () => {
      const before = this.#where.now;
      if (before.message !== number) return;
      const { event } = await this.#source.message(before.as, number);
      // Who has gone elsewhere meanwhile is not called back.
      if (differs(this.#where.now, before, "session", "as", "message")) return;
      if (event === null || event.seq === this.#watched.seq) {
        // What is followed would push the message aside.
        if (before.live && before.at === null) this.#where.go({ at: this.#watched.seq });
        return;
      }
      this.#where.go({ table: event.table, at: event.seq });
    });
  }

  async #tell({ id }) {
    const before = this.#where.now;
    const { diagnostics } = await this.#source.diagnostics(before.as, { after: id - 1, limit: 1 });
    const flaw = diagnostics.find((one) => one.id === id);
    // Over another's shoulder its message may not be seen.
    if (differs(this.#where.now, before, "session", "as")) return;
    if (flaw && this.#flaw?.id === id) {
      this.#where.go({ notice: `${flaw.severity}[${flaw.code}]: ${flaw.text}`, message: flaw.message });
    }
  }

  #inTurn(move) {
    this.#last = this.#last.then(move).catch((error) => this.#where.go({ notice: error.message }));
  }
}

function isAfter(flaw, other) {
  return flaw.seq > other.seq || (flaw.seq === other.seq && flaw.id > other.id);
}
