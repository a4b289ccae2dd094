// The pane with the messages of the table.

import { element, markSpan } from "./elements.js";
import { clientName, formatSeconds, severitySign } from "./format.js";
import { ListPane } from "./pane.js";

/** Number of messages loaded after the opened one. */
const AFTER_OPENED = 40;

/** The list of the table's messages around the current event. A subclass may load and show more with them. */
export class MessagesPane extends ListPane {
  #paged = null;
  #query = null;
  pauseMs = 300;

  constructor(context, name = "messages", title = "Messages") {
    super(name, title, context);
  }

  get kind() {
    return "message";
  }

  get reference() {
    return this.list?.item?.number ?? null;
  }

  draw() {
    const { session, table, as, filter } = this.view.now;
    if (table === null) {
      this.showNothing("no messages of a game yet");
      this.#query = null;
      return;
    }
    const query = JSON.stringify([session, table, as, filter]);
    if (query !== this.#query) this.#replace({ table, as, filter });
    this.#query = query;
    super.draw();
  }

  #replace({ table, as, filter }) {
    this.#paged = this.replaceList({
      load: (params) => this.request(table, as, { filter, ...params }),
      id: "message",
      rows: "messages",
      rowOf: (message) => messageRow(message, this.model.markOf("message", message.number)),
      keyOf: (message) => message.number,
      changed: () => this.#mark(),
      nothing: "no messages, or none that match the filter",
      opened: (message) => this.navigation.open(message.number),
    });
  }

  /** Request messages of a table. */
  request(table, as, params) {
    return this.source.messages(as, { table, ...params });
  }

  /** Prepare what is shown of the loaded messages. */
  beforeDraw() {}

  /** Return the key of the row to mark: that of the opened message, or for the current event. */
  current(messages) {
    const { event } = this.model;
    const opened = messages.find(({ number }) => number === this.view.now.message);
    if (opened) return opened.number;
    const reporting = event && messages.find((message) => message.event === event.number);
    const last = event ? messages.findLast((message) => message.time <= event.time) : messages.at(-1);
    return (reporting || last)?.number ?? null;
  }

  /** Load the messages around the opened one, or around the current event. */
  async load() {
    const paged = this.#paged;
    const { message } = this.view.now;
    const isLoaded = message === null ? this.#isLoaded(paged) : paged.items.some(({ number }) => number === message);
    if (!isLoaded) {
      await paged.reload(message === null ? { at: this.model.seq } : { before: message + AFTER_OPENED });
      // Later messages are loaded by scrolling.
      paged.hasGrown();
    }
    // There may be more messages since.
    if (this.view.now.live) paged.hasGrown();
    if (!paged.isLast) await paged.more("after");
    this.#mark();
  }

  key() {
    const { at, data, message } = this.view.now;
    if (this.model.timeline === null) return null;
    // At the end, messages may arrive without an event.
    return JSON.stringify([this.#query, this.model.seq, message, at === null ? data : null]);
  }

  /** Whether the current time is within the loaded messages, with at least one before it. */
  #isLoaded({ items, isFirst, isLast, isLoaded }) {
    const time = this.model.event?.time;
    if (!isLoaded || time === undefined || !items.length) return false;
    return (isFirst || items[0].time < time) && (isLast || items.at(-1).time >= time);
  }

  #mark() {
    this.beforeDraw(this.#paged);
    this.list.draw();
    this.list.mark(this.current(this.#paged.items));
  }
}

function messageRow(message, mark) {
  const { time, direction, name, gloss, words, flaw: severity, altered, number } = message;
  const sign = severitySign(severity);
  const more = [altered && `altered[${altered}]`, gloss, words].filter(Boolean);
  return [
    element("span", { class: "row-time" }, formatSeconds(time)),
    element(
      "span",
      { class: "row-text" },
      element("span", { class: "row-who" }, `${direction === "c2s" ? "→" : "←"} ${clientName(message)}`),
      " ",
      sign ? element("span", { class: `sign is-${severity}`, role: "img", "aria-label": severity }, sign) : "",
      element("b", {}, name),
      element("span", { class: "row-more" }, more.map((part) => ` · ${part}`).join("")),
      markSpan(mark),
    ),
    element("span", { class: "row-id" }, `#${number}`),
  ];
}
