// Navigation: the actions of keys, buttons and the timeline.

import { byId } from "./elements.js";
import { Part } from "./part.js";
import { changedSpeed } from "./playback.js";
import { TimelineData } from "./timeline_data.js";
import { differs } from "./view_state.js";

/** Number of errors requested at a time. */
const ERRORS_READ = 100;
/** Greater than the id of any diagnostic. */
const ABOVE_ALL_IDS = 1e12;

/** Moves the current position; each move starts after the previous one has finished. */
export class Navigation extends Part {
  #last = Promise.resolve();
  /** The diagnostic last moved to, its notice, and the event shown for it: the first event, if it is earlier. */
  #diagnostic = null;

  /** Move to an event of this table, and pause. */
  moveTo(seq, change = {}) {
    this.#diagnostic = null;
    this.view.update({ at: seq, playing: false, message: null, notice: "", ...change });
  }

  /** Move by a number of events. */
  step(by) {
    this.#queue(async () => {
      const { tableEvents, seq } = this.model;
      const found = await tableEvents?.next(seq, by);
      if (found) this.moveTo(found.seq);
      // At the first event of a live session, stepping back still stops following.
      else if (tableEvents) this.moveTo(seq);
    });
  }

  /** Move to the beginning of the next game or, backwards, of this or the previous one. */
  game(by) {
    this.#queue(() => {
      const { timeline, seq } = this.model;
      const found = timeline?.adjacentGame(seq, by) ?? null;
      if (found !== null) this.moveTo(found);
      else this.view.update({ notice: by > 0 ? "that was the last game" : "that was the first game" });
    });
  }

  /** Move to the first event. */
  begin() {
    this.#queue(async () => {
      const found = await this.model.tableEvents?.end("first");
      if (found) this.moveTo(found.seq);
    });
  }

  /** Move to the last event, and follow a live session. */
  end() {
    this.#queue(async () => {
      if (this.view.now.live) {
        this.moveTo(null);
        return;
      }
      const found = await this.model.tableEvents?.end("last");
      if (found) this.moveTo(found.seq);
    });
  }

  /** Move to the next or previous error; without errors, to a warning. */
  error(by) {
    this.#queue(() => this.#error(by));
  }

  /** Play or pause. */
  play() {
    this.#queue(() => this.#play());
  }

  async #error(by) {
    const before = this.view.now;
    const { timeline, seq } = this.model;
    if (timeline === null) return;
    const severity = timeline.errors ? "error" : "warning";
    const shown = this.#diagnostic?.at === seq ? this.#diagnostic : null;
    const found = timeline[`${severity}s`] ? await this.#nearest(by, severity, shown) : undefined;
    if (differs(this.view.now, before, "session", "table", "as")) return;
    if (!found) {
      const side = `no ${severity} ${by > 0 ? "after" : "before"} this ${shown ? "one" : "event"}`;
      this.view.update({ notice: found === null ? side : "there are no errors and no warnings" });
      return;
    }
    const { id, code, text, message } = found;
    const at = Math.max(found.seq, timeline.begin);
    const notice = `${severity}[${code}]: ${text}`;
    this.moveTo(at, { notice, message });
    this.#diagnostic = { id, at, notice, message };
  }

  /** Return what opens the message that a notice is about, with the focus there; null without one. */
  openerOf(notice) {
    if (!this.#diagnostic?.message || this.#diagnostic.notice !== notice) return null;
    return () => {
      this.open(this.#diagnostic.message);
      requestAnimationFrame(() => byId("pane-message").querySelector("[tabindex]").focus());
    };
  }

  /** Return the diagnostic of a severity next to the one shown, or to the current event; null if there is none. */
  async #nearest(by, severity, shown) {
    const { table, as } = this.view.now;
    const { timeline, seq } = this.model;
    const isForward = by > 0;
    // From where the session opens, the errors before it are found, too.
    const isAtBegin = isForward && (seq <= timeline.begin || seq === timeline.opening);
    const isWanted = (one) => shown || isAtBegin || (isForward ? one.seq > seq : one.seq < seq);
    // The marks are a sample: from the one before the position, all are read.
    const marks = timeline.diagnostics;
    const mark = isForward ? marks.findLast((one) => one.seq <= seq) : marks.find((one) => one.seq >= seq);
    let id = shown?.id ?? (isAtBegin ? null : mark?.id) ?? (isForward ? 0 : ABOVE_ALL_IDS);
    for (;;) {
      const params = { table, severity, [isForward ? "after" : "before"]: id, limit: shown ? 1 : ERRORS_READ };
      const { diagnostics, is_first: isFirst, is_last: isLast } = await this.source.diagnostics(as, params);
      const found = isForward ? diagnostics.find(isWanted) : diagnostics.findLast(isWanted);
      if (found || !diagnostics.length || (isForward ? isLast : isFirst)) return found ?? null;
      id = diagnostics.at(isForward ? -1 : 0).id;
    }
  }

  #play() {
    const { playing, at, live } = this.view.now;
    const { timeline, seq } = this.model;
    if (timeline === null) return;
    if (playing || (live && at === null)) this.view.update({ playing: false, at: seq, notice: "" });
    else if (seq >= timeline.last && live) this.moveTo(null);
    else
      this.view.update({
        at: seq >= timeline.last ? timeline.begin : seq,
        playing: true,
        message: null,
        notice: "",
      });
  }

  /** Double or halve the speed. */
  speed(isFaster) {
    this.view.update({ speed: changedSpeed(this.view.now.speed, isFaster) });
  }

  /** Play one event a second, or as recorded. */
  pace() {
    this.view.update({ speed: this.view.now.speed === 0 ? 1 : 0 });
  }

  /** Switch to another table, or to one of its games, at the same time. */
  switchTable(table, game = null) {
    this.#queue(async () => {
      const { at, as } = this.view.now;
      const { timeline, seq } = this.model;
      const change = { table, game, several: false, message: null, notice: "", playing: false };
      if (at !== null && timeline !== null) {
        const other = new TimelineData(await this.source.timeline(table, as));
        change.at = Math.max(other.seqAt(timeline.secondsAt(seq)), other.begin);
      }
      this.view.update(change);
    });
  }

  /** Open a message, and move to the event that it reports. */
  open(number) {
    this.view.update({ message: number, pane: "message", playing: false, notice: "" });
    this.#queue(async () => {
      const before = this.view.now;
      if (before.message !== number) return;
      const { event } = await this.source.message(before.as, number);
      // The user may have moved on meanwhile.
      if (differs(this.view.now, before, "session", "as", "message")) return;
      if (event === null || event.seq === this.model.seq) {
        // Following new events would replace the message.
        if (before.live && before.at === null) this.view.update({ at: this.model.seq });
        return;
      }
      this.view.update({ table: event.table, at: event.seq });
    });
  }

  #queue(task) {
    this.#last = this.#last.then(task).catch((error) => this.view.update({ notice: error.message }));
  }
}
