// The pane with the streams of the session.

import { element, linkButton } from "./elements.js";
import { formatCount, formatSeconds } from "./format.js";
import { Pane, scrolledRegion } from "./pane.js";

/** Pause between two requests while the session is live. */
const STREAMS_PAUSE_MS = 2000;
/** Maximum number shown: a port scan leaves thousands. */
const MOST_STREAMS = 1000;

/** The streams of the session. */
export class StreamsPane extends Pane {
  #refresher;

  constructor(context) {
    super("streams", "Streams", scrolledRegion("Streams"), context);
    this.#refresher = this.refresher({
      keyOf: () => this.#key(),
      ask: () => this.#load(),
      pauseMs: STREAMS_PAUSE_MS,
    });
  }

  draw() {
    this.#refresher.refresh();
  }

  #key() {
    const { session, as, data, live } = this.view.now;
    return JSON.stringify([session, as, live ? data : null]);
  }

  async #load() {
    const { streams } = await this.source.streams(this.view.now.as);
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
        ? `open since ${formatSeconds(opened)} s`
        : `${formatSeconds(opened)} s to ${formatSeconds(closed)} s${reason ? `, ${reason}` : ""}`;
    const amount = `${formatCount(messages, "message")}, ${formatCount(bytes, "byte")}`;
    const only = this.source.isFile
      ? null
      : linkButton("only this stream", () => this.filterLine.open(`stream == ${number}`));
    return element(
      "article",
      { class: "stream" },
      element("h3", {}, `${number} · ${player ?? client}`),
      element("p", {}, `${player === null ? "" : `${client} → `}${server} over ${transport}`),
      element("p", {}, `${protocol ?? "unknown protocol"}, ${amount}`),
      element("p", {}, state),
      only,
    );
  }
}
