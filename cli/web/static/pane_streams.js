// The pane with the streams of the session.

import { dataTable } from "./data_table.js";
import { element, linkButton } from "./elements.js";
import { formatSeconds } from "./format.js";
import { Pane, scrolledRegion } from "./pane.js";

/** Maximum number shown: a port scan leaves thousands. */
const MOST_STREAMS = 1000;
const COLUMNS = ["stream", "player", "protocol", "messages", "bytes", "opened (s)", "closed (s)", "reason", "client", "server"];

/** The streams of the session. */
export class StreamsPane extends Pane {
  pauseMs = 2000;

  constructor(context) {
    super("streams", "Streams", scrolledRegion("Streams"), context);
  }

  key() {
    const { session, as, data, live } = this.view.now;
    return JSON.stringify([session, as, live ? data : null]);
  }

  async load() {
    const { streams } = await this.source.streams(this.view.now.as);
    const rows = streams.slice(0, MOST_STREAMS).map((stream) => this.#row(stream));
    const rest = streams.length - MOST_STREAMS;
    this.root.replaceChildren(
      rows.length ? dataTable("Streams", COLUMNS, rows) : element("p", { class: "nothing" }, "no streams yet"),
      element("p", { class: "faint" }, rest > 0 ? `… and ${rest} more` : ""),
    );
  }

  #row({ number, protocol, transport, client, server, player, opened, closed, close_reason: reason, messages, bytes }) {
    const link = linkButton(String(number), () => this.filterLine.open(`stream == ${number}`));
    link.title = `only stream ${number}`;
    return [
      this.source.isFile ? number : { value: number, shown: link },
      player ?? client,
      protocol ?? "unknown",
      messages,
      bytes,
      { value: opened, shown: formatSeconds(opened) },
      closed === null ? "open" : { value: closed, shown: formatSeconds(closed) },
      reason ?? "",
      client,
      `${server} over ${transport}`,
    ];
  }
}
