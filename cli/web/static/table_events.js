// A table's events in order, limited to what the viewer knows and the filter accepts.

import { PagedList } from "./paged_list.js";

/** Number of events from an end at which more are loaded. */
const NEAR = 40;
/** Greater than the number of any event. */
const BEHIND_ALL = 1e12;

/** The events around the current position. */
export class TableEvents {
  /** @type {PagedList<object>} */
  paged;
  #filter;

  /**
   * @param {import("./source.js").Source} source
   * @param {{table: number, as: string|null, filter: string}} which
   * @param {() => void} changed
   */
  constructor(source, { table, as, filter }, changed) {
    this.#filter = filter;
    this.paged = new PagedList({
      load: async (params) => {
        const { is_first: isFirst, is_last: isLast, events } = await source.events(table, as, { ...params, filter });
        return { items: events, isFirst, isLast };
      },
      keyOf: (event) => event.seq,
      changed,
    });
  }

  /** Load the events around an event. */
  async load(seq) {
    const { paged } = this;
    const { items } = paged;
    const isHere =
      paged.isLoaded &&
      (paged.isFirst || (items.length && items[0].seq <= seq)) &&
      (paged.isLast || (items.length && items.at(-1).seq >= seq));
    if (!isHere) {
      await paged.reload({ around: seq });
      return;
    }
    const place = paged.indexOf(seq);
    // Loaded in advance: not awaited.
    if (place > items.length - NEAR && !paged.isLast) paged.more("after").catch(() => {});
    if (place < NEAR && !paged.isFirst) paged.more("before").catch(() => {});
  }

  /** Return the last loaded event that is not after `seq`. */
  upTo(seq) {
    return this.paged.items[this.paged.indexOf(seq)] ?? null;
  }

  /** Return the event `by` events after or before one, or the last in that direction; null if there is none. */
  async next(seq, by = 1) {
    await this.load(seq);
    const side = by > 0 ? "after" : "before";
    for (;;) {
      const { items, isFirst, isLast } = this.paged;
      const place = this.paged.indexOf(seq);
      const isAt = place >= 0 && items[place].seq === seq;
      // Between two events, one step back leads to the previous one.
      const wanted = by < 0 && !isAt ? place + by + 1 : place + by;
      if (items[wanted] !== undefined) return items[wanted];
      if (by > 0 ? isLast : isFirst) {
        const end = items.at(by > 0 ? -1 : 0) ?? null;
        return end === null || end.seq === seq || (by > 0 ? end.seq < seq : end.seq > seq) ? null : end;
      }
      await this.paged.more(side);
    }
  }

  /** Return the first or last event. */
  async end(side) {
    await this.paged.reload(side === "first" ? { after: 0 } : { before: BEHIND_ALL });
    return this.paged.items.at(side === "first" ? 0 : -1) ?? null;
  }

  /** Append new events. */
  append(events) {
    if (this.#filter === "") this.paged.append(events);
    else this.paged.hasGrown();
  }
}
