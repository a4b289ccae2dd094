// The pane with the events of the table.

import { formatSeconds } from "./format.js";
import { ListPane } from "./pane.js";

const EVENT_COLUMNS = {
  time: { sort: "time", kind: "row-time", of: ({ time }) => [formatSeconds(time)] },
  kind: { sort: "kind", kind: "row-who", of: ({ kind }) => [`${kind} `] },
  player: { sort: "actor", kind: "row-who", of: ({ actor }) => [`${actor ?? ""} `] },
  event: { of: ({ sentence, altered }) => [altered ? `${sentence} · altered[${altered}]` : sentence] },
  "#": { sort: "number", kind: "row-id", of: ({ number }) => [`#${number}`] },
};

/** The list of the table's events; the current one is marked. */
export class EventsPane extends ListPane {
  /** What the list is of: the events of the model, or those of a sorted list. */
  #shown = null;
  pauseMs = 1000;

  constructor(context) {
    super("events", "Events", context, EVENT_COLUMNS, { fixed: "event", natural: "#", hidden: ["kind", "player"] });
  }

  draw() {
    const { tableEvents, seq } = this.model;
    const { session, table, as, filter } = this.view.now;
    const shown = tableEvents && this.sort ? JSON.stringify([session, table, as, filter, this.sort]) : tableEvents;
    if (shown === null) this.showNothing("no game yet");
    else if (shown !== this.#shown) this.#replace(tableEvents, { table, as, filter });
    this.#shown = shown;
    if (shown === null) return;
    if (this.sort) super.draw();
    this.list.draw();
    const here = tableEvents.upTo(seq)?.seq ?? null;
    this.list.mark(here);
  }

  key() {
    return JSON.stringify([this.#shown, this.view.now.live ? this.view.now.data : null]);
  }

  load() {
    return this.loadSorted();
  }

  #replace(tableEvents, { table, as, filter }) {
    this.replaceList({
      paged: this.sort ? null : tableEvents.paged,
      load: (params) => this.source.events(table, as, { filter, ...params }),
      id: "event",
      rows: "events",
      markOf: (event) => this.model.markOf("event", event.number),
      keyOf: (event) => event.seq,
      changed: () => this.draw(),
      nothing: "no events yet, or none that match the filter",
      opened: (event) => this.navigation.moveTo(event.seq),
      isFollowed: true,
    });
  }
}
