// The pane with the rounds of the table, and its statistics.

import { dataTable } from "./data_table.js";
import { element, linkButton } from "./elements.js";
import { formatClock } from "./format.js";
import { Pane, scrolledRegion } from "./pane.js";

const MOST_ROUNDS = 500;

/** The statistics of the table, limited to the events that pass the filter. */
export class StatisticsPane extends Pane {
  pauseMs = 3000;

  constructor(context) {
    super("statistics", "Statistics", scrolledRegion("Statistics"), context);
  }

  draw() {
    if (this.key() === null) this.root.replaceChildren(element("p", { class: "nothing" }, "no game yet"));
    else super.draw();
  }

  key() {
    const { session, table, as, filter, data, live } = this.view.now;
    if (table === null || this.model.timeline === null) return null;
    return JSON.stringify([session, table, as, filter, live ? data : null]);
  }

  async load() {
    const { table, as, filter } = this.view.now;
    const { statistics } = await this.source.statistics(table, as, filter);
    const tables = statistics.flatMap(({ title, says, columns, rows }) => [
      rows.length ? dataTable(title, columns, rows) : element("h3", {}, title),
      element("p", { class: "faint" }, says),
    ]);
    const none = this.source.isFile ? "kiebitz serve and kiebitz stats show statistics" : "no statistics of these events, or of this view";
    this.root.replaceChildren(
      ...this.#rounds(this.model.timeline),
      ...(tables.length ? tables : [element("p", { class: "faint" }, none)]),
    );
  }

  /** Return a line for each game; a click moves to its beginning. */
  #rounds({ games }) {
    const rows = games.slice(-MOST_ROUNDS).map(({ label, seq, result }) => {
      const begins = this.model.timeline.secondsAt(seq);
      const link = linkButton(label, () => this.navigation.moveTo(seq));
      return [{ value: seq, shown: link }, { value: begins, shown: formatClock(begins) }, result ?? ""];
    });
    return rows.length ? [dataTable("Rounds", ["round", "begins", "result"], rows)] : [];
  }
}
