// The pane with the messages of the table.

import { element, severitySpan } from "./elements.js";
import { clientName, formatCount, formatSeconds } from "./format.js";
import { ListPane } from "./pane.js";

/** Number of messages loaded after the opened one. */
const AFTER_OPENED = 40;

const MESSAGE_COLUMNS = {
  time: { sort: "time", kind: "row-time", of: ({ time }) => [formatSeconds(time)] },
  player: {
    sort: "client",
    kind: "row-who",
    of: (message) => [`${message.direction === "c2s" ? "→" : "←"} ${clientName(message)} `],
  },
  message: { sort: "name", of: ({ name, flaw }) => [severitySpan(flaw), element("b", {}, name)] },
  content: { sort: "words", kind: "row-more", of: wordsOf },
  bytes: { sort: "length", kind: "row-who", of: ({ length }) => [` ${formatCount(length, "byte")}`] },
  "#": { sort: "number", kind: "row-id", of: ({ number }) => [`#${number}`] },
};

/** The list of the table's messages around the current event. A subclass may load and show more with them. */
export class MessagesPane extends ListPane {
  #query = null;
  pauseMs = 300;

  constructor(context, name = "messages", title = "Messages", cells = MESSAGE_COLUMNS) {
    super(name, title, context, cells, { fixed: "message", natural: "#", hidden: ["bytes"] });
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
    const query = JSON.stringify([session, table, as, filter, this.sort]);
    if (query !== this.#query) this.#replace({ table, as, filter });
    this.#query = query;
    super.draw();
  }

  #replace({ table, as, filter }) {
    this.replaceList({
      load: (params) => this.request(table, as, { filter, ...params }),
      id: "message",
      rows: "messages",
      markOf: (message) => this.model.markOf("message", message.number),
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
    if (this.sort) return reporting?.number ?? null;
    const last = event ? messages.findLast((message) => message.time <= event.time) : messages.at(-1);
    return (reporting || last)?.number ?? null;
  }

  /** Load the messages around the opened one, or around the current event. */
  async load() {
    if (this.sort) return this.loadSorted();
    const { paged } = this;
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
    const { at, data, message, live } = this.view.now;
    if (this.model.timeline === null) return null;
    if (this.sort) return JSON.stringify([this.#query, live ? data : null]);
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
    this.beforeDraw(this.paged);
    this.list.draw();
    this.list.mark(this.current(this.paged.items));
  }
}

function wordsOf({ gloss, words, altered }) {
  return [altered && `altered[${altered}]`, gloss, words].filter(Boolean).map((part) => ` · ${part}`);
}
