// The pane of messages: what was said, up to where one is and after it.

import { element } from "./elements.js";
import { Latest } from "./latest.js";
import { List } from "./list.js";
import { Stretch } from "./stretch.js";
import { clientWords, secondsWords, signOf } from "./words.js";

/** So long nothing is asked after an answer, while what is recorded goes on. */
const MESSAGES_PAUSE_MS = 300;

/** Lists the messages of the table, around the moment one is at. */
export class MessagesPane {
  name = "messages";
  title = "Messages";
  root = element("div", { class: "pane-body" });
  #source;
  #where;
  #watched;
  #moves;
  #list = null;
  #stretch = null;
  #of = null;
  #latest;

  /** What all panes are given: see `panes.js`. */
  constructor({ source, where, watched, moves }) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#moves = moves;
    this.#latest = new Latest({
      keyOf: () => this.#key(),
      ask: () => this.#go(),
      failed: (error) => where.go({ notice: error.message }),
      pauseMs: MESSAGES_PAUSE_MS,
    });
  }

  /** What `y` copies a reference of: the message that is chosen. */
  get reference() {
    return this.#list?.item?.number ?? null;
  }

  /** Do what a key does in the list; whether it does anything. */
  press(event) {
    return this.#list?.press(event) ?? false;
  }

  /** Show where one is now. */
  draw() {
    const { session, table, as, filter } = this.#where.now;
    if (table === null) {
      this.root.replaceChildren(element("p", { class: "nothing" }, "no messages of any game yet"));
      this.#of = this.#list = null;
      return;
    }
    const of = JSON.stringify([session, table, as, filter]);
    if (of !== this.#of) this.#take(of, { table, as, filter });
    this.#latest.look();
  }

  #take(of, { table, as, filter }) {
    this.#of = of;
    this.#stretch = new Stretch({
      load: async (asked) => {
        const found = await this.#source.messages(as, { table, filter, ...asked });
        return { items: found.messages, isFirst: found.is_first, isLast: found.is_last };
      },
      keyOf: (message) => message.number,
      changed: () => this.#mark(),
    });
    this.#list = new List({
      label: "Messages",
      id: "message",
      stretch: this.#stretch,
      rowOf: messageRow,
      keyOf: (message) => message.number,
      nothing: "no messages, or none that meets the filter",
      opened: (message) => this.#moves.open(message.number),
    });
    this.root.replaceChildren(this.#list.root);
  }

  /** Bring what was said around this moment here. */
  async #go() {
    const stretch = this.#stretch;
    if (!this.#isHere(stretch)) {
      await stretch.reload({ at: this.#watched.seq });
      // What was said later is asked for as it is scrolled to.
      stretch.hasGrown();
    }
    // More may have been said since.
    if (this.#where.now.live) stretch.hasGrown();
    if (!stretch.isLast) await stretch.more("after");
    this.#mark();
  }

  #key() {
    const { at, data } = this.#where.now;
    if (this.#watched.timeline === null) return null;
    // At the end more is said without anything happening.
    return JSON.stringify([this.#of, this.#watched.seq, at === null ? data : null]);
  }

  /** Whether this moment is in the stretch, with something before it. */
  #isHere({ items, isFirst, isLast, isLoaded }) {
    const time = this.#watched.event?.time;
    if (!isLoaded || time === undefined || !items.length) return false;
    return (isFirst || items[0].time < time) && (isLast || items.at(-1).time >= time);
  }

  #mark() {
    this.#list.draw();
    const { event } = this.#watched;
    const { items } = this.#stretch;
    const told = event && items.find((message) => message.event === event.number);
    const last = event ? items.findLast((message) => message.time <= event.time) : items.at(-1);
    this.#list.mark((told || last)?.number ?? null);
  }
}

function messageRow(message) {
  const { time, direction, name, gloss, words, flaw, altered, number } = message;
  const isFromClient = direction === "c2s";
  const sign = signOf(flaw);
  return [
    element("span", { class: "row-time" }, secondsWords(time)),
    element(
      "span",
      { class: "row-text" },
      element("span", { class: "row-who" }, `${isFromClient ? "→" : "←"} ${clientWords(message)}`),
      " ",
      sign ? element("span", { class: `sign is-${flaw}`, role: "img", "aria-label": flaw }, sign) : "",
      element("b", {}, name),
      element(
        "span",
        { class: "row-more" },
        [altered && `altered[${altered}]`, gloss, words]
          .filter(Boolean)
          .map((part) => ` · ${part}`)
          .join(""),
      ),
    ),
    element("span", { class: "row-id" }, `#${number}`),
  ];
}
