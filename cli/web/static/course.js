// A table's events in their order: all of them, or those that a player knows of and a filter lets through.

import { Stretch } from "./stretch.js";

/** So near to an end of what is here, more is asked for. */
const NEAR = 40;
/** No table has so many events. */
const BEHIND_ALL = 1e12;

/** The events around where one is; moves along. */
export class Course {
  /** @type {Stretch<object>} */
  stretch;
  #filter;

  /**
   * @param {import("./source.js").Source} source
   * @param {{table: number, as: string|null, filter: string}} which
   * @param {() => void} changed
   */
  constructor(source, { table, as, filter }, changed) {
    this.#filter = filter;
    this.stretch = new Stretch({
      load: async (asked) => {
        const found = await source.events(table, as, { ...asked, filter });
        return { items: found.events, isFirst: found.is_first, isLast: found.is_last };
      },
      keyOf: (event) => event.seq,
      changed,
    });
  }

  /** Bring what is around an event here. */
  async go(seq) {
    const { stretch } = this;
    const { items } = stretch;
    const isHere =
      stretch.isLoaded &&
      (stretch.isFirst || (items.length && items[0].seq <= seq)) &&
      (stretch.isLast || (items.length && items.at(-1).seq >= seq));
    if (!isHere) {
      await stretch.reload({ around: seq });
      return;
    }
    const place = stretch.placeOf(seq);
    // What lies ahead comes meanwhile: nobody waits for it.
    if (place > items.length - NEAR && !stretch.isLast) stretch.more("after").catch(() => {});
    if (place < NEAR && !stretch.isFirst) stretch.more("before").catch(() => {});
  }

  /** The last event that is not after this one, of those that are here. */
  upTo(seq) {
    return this.stretch.items[this.stretch.placeOf(seq)] ?? null;
  }

  /** The event that comes so many after this one, or before it; the last there is that way; null if there is none. */
  async next(seq, by = 1) {
    await this.go(seq);
    const side = by > 0 ? "after" : "before";
    for (;;) {
      const { items, isFirst, isLast } = this.stretch;
      const place = this.stretch.placeOf(seq);
      const isAt = place >= 0 && items[place].seq === seq;
      // Between two events the one before is the last, not the one that one is at.
      const wanted = by < 0 && !isAt ? place + by + 1 : place + by;
      if (items[wanted] !== undefined) return items[wanted];
      if (by > 0 ? isLast : isFirst) {
        const end = items.at(by > 0 ? -1 : 0) ?? null;
        return end === null || end.seq === seq || (by > 0 ? end.seq < seq : end.seq > seq) ? null : end;
      }
      await this.stretch.more(side);
    }
  }

  /** The first event there is, or the last. */
  async end(side) {
    await this.stretch.reload(side === "first" ? { after: 0 } : { before: BEHIND_ALL });
    return this.stretch.items.at(side === "first" ? 0 : -1) ?? null;
  }

  /** Take what has just happened. */
  take(events) {
    if (this.#filter === "") this.stretch.append(events);
    else this.stretch.hasGrown();
  }
}
