// The pane with the events of the table.

import { element, markSpan } from "./elements.js";
import { formatSeconds } from "./format.js";
import { List } from "./list.js";
import { ListPane } from "./pane.js";

/** The list of the table's events; the current one is marked. */
export class EventsPane extends ListPane {
  #tableEvents = null;

  constructor(context) {
    super("events", "Events", context);
  }

  draw() {
    const { tableEvents, seq } = this.model;
    if (tableEvents === null) this.showNothing("no game yet");
    else if (tableEvents !== this.#tableEvents) this.#replace(tableEvents);
    this.#tableEvents = tableEvents;
    this.list?.draw();
    this.list?.mark(tableEvents.upTo(seq)?.seq ?? null);
  }

  #replace(tableEvents) {
    this.list = new List({
      label: "Events",
      id: "event",
      paged: tableEvents.paged,
      rowOf: (event) => eventRow(event, this.model.markOf("event", event.number)),
      keyOf: (event) => event.seq,
      nothing: "no events yet, or none that match the filter",
      opened: (event) => this.navigation.moveTo(event.seq),
      isFollowed: true,
    });
    this.root.replaceChildren(this.list.root);
  }
}

function eventRow({ time, sentence, altered, number }, mark) {
  return [
    element("span", { class: "row-time" }, formatSeconds(time)),
    element("span", { class: "row-text" }, altered ? `${sentence} · altered[${altered}]` : sentence, markSpan(mark)),
    element("span", { class: "row-id" }, `#${number}`),
  ];
}
