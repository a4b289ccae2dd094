// The pane of streams: who talked to which server, how long, and how much.

import { element } from "./elements.js";
import { Latest } from "./latest.js";
import { countWords, secondsWords } from "./words.js";

/** So long nothing is asked after an answer, while what is recorded goes on. */
const STREAMS_PAUSE_MS = 2000;
/** So many are shown: a server that is scanned has thousands. */
const MOST_STREAMS = 1000;

/** Lists the streams of the session. */
export class StreamsPane {
  name = "streams";
  title = "Streams";
  root = element("div", {
    class: "pane-body is-scrolled",
    tabindex: 0,
    role: "region",
    "aria-label": "Streams",
  });
  #source;
  #where;
  #watched;
  #filterLine;
  #latest;

  /** What all panes are given: see `panes.js`. */
  constructor({ source, where, watched, filterLine }) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#filterLine = filterLine;
    this.#latest = new Latest({
      keyOf: () => this.#key(),
      ask: () => this.#ask(),
      failed: (error) => where.go({ notice: error.message }),
      pauseMs: STREAMS_PAUSE_MS,
    });
  }

  /** What `y` copies a reference of: the event one is at. */
  get reference() {
    return this.#watched.event?.number ?? null;
  }

  /** Show them, as they are now. */
  draw() {
    this.#latest.look();
  }

  #key() {
    const { session, as, data, live } = this.#where.now;
    return JSON.stringify([session, as, live ? data : null]);
  }

  async #ask() {
    const { streams } = await this.#source.streams(this.#where.now.as);
    const rows = streams.slice(0, MOST_STREAMS).map((stream) => this.#row(stream));
    if (streams.length > MOST_STREAMS)
      rows.push(element("p", { class: "faint" }, `… and ${streams.length - MOST_STREAMS} more`));
    this.root.replaceChildren(
      ...(rows.length ? rows : [element("p", { class: "nothing" }, "no streams yet")]),
    );
  }

  #row(stream) {
    const {
      number,
      protocol,
      transport,
      client,
      server,
      player,
      opened,
      closed,
      close_reason: reason,
      messages,
      bytes,
    } = stream;
    const state =
      closed === null
        ? `open since ${secondsWords(opened)} s`
        : `${secondsWords(opened)} s to ${secondsWords(closed)} s${reason ? `, ${reason}` : ""}`;
    const amount = `${countWords(messages, "message")}, ${countWords(bytes, "byte")}`;
    const only = this.#source.isFile
      ? null
      : element(
          "button",
          { type: "button", class: "link", onclick: () => this.#filterLine.open(`stream == ${number}`) },
          "only this stream",
        );
    return element(
      "article",
      { class: "stream" },
      element("h3", {}, `${number} · ${player ?? client}`),
      element("p", {}, `${player === null ? "" : `${client} → `}${server} over ${transport}`),
      element("p", {}, `${protocol ?? "no game known"}, ${amount}`),
      element("p", {}, state),
      only,
    );
  }
}
