// The pane of streams: who talked to which server, how long, and how much.

import { element } from "./elements.js";
import { countWords, secondsWords } from "./words.js";

/** Lists the streams of the session. */
export class StreamsPane {
  name = "streams";
  title = "Streams";
  root = element("div", { class: "pane-body is-scrolled", tabindex: 0, role: "region", "aria-label": "Streams" });
  #source;
  #where;
  #watched;
  #filterLine;
  #of = null;

  /** What all panes are given: see `panes.js`. */
  constructor({ source, where, watched, filterLine }) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#filterLine = filterLine;
  }

  /** What `y` copies a reference of: the event one is at. */
  get reference() {
    return this.#watched.event?.id ?? null;
  }

  /** Show them, as they are now. */
  async draw() {
    const { session, as, data } = this.#where.now;
    const of = JSON.stringify([session, as, data]);
    if (of === this.#of) return;
    this.#of = of;
    try {
      const { streams } = await this.#source.streams(as);
      const rows = streams.map((stream) => this.#row(stream));
      this.root.replaceChildren(...(rows.length ? rows : [element("p", { class: "nothing" }, "no streams yet")]));
    } catch (error) {
      this.#of = null;
      this.#where.go({ notice: error.message });
    }
  }

  #row(stream) {
    const { id, protocol, transport, client, server, player, opened, closed, close_reason: reason, messages, bytes } = stream;
    const state = closed === null ? `open since ${secondsWords(opened)} s` : `${secondsWords(opened)} s to ${secondsWords(closed)} s${reason ? `, ${reason}` : ""}`;
    const amount = `${countWords(messages, "message")}, ${countWords(bytes, "byte")}`;
    const only = this.#source.isFile
      ? null
      : element("button", { type: "button", class: "link", onclick: () => this.#filterLine.open(`stream == ${id}`) }, "only this stream");
    return element(
      "article",
      { class: "stream" },
      element("h3", {}, `${id} · ${player ?? client}`),
      element("p", {}, `${player === null ? "" : `${client} → `}${server} over ${transport}`),
      element("p", {}, `${protocol ?? "no game known"}, ${amount}`),
      element("p", {}, state),
      only,
    );
  }
}
