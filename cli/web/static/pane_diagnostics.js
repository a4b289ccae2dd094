// The pane with the diagnostics of the table.

import { element } from "./elements.js";
import { clientName, formatSeconds, severitySign } from "./format.js";
import { List } from "./list.js";
import { PagedList, pageOf } from "./paged_list.js";
import { ListPane } from "./pane.js";

const SEVERITIES = { error: "errors", warning: "errors and warnings", note: "all, with notes" };

/** Pause between two requests while the session is live. */
const DIAGNOSTICS_PAUSE_MS = 1000;

/** The list of the table's diagnostics, from a severity on. */
export class DiagnosticsPane extends ListPane {
  #severity = "note";
  #paged = null;
  #query = null;
  #refresher;

  constructor(context) {
    super("diagnostics", "Diagnostics", context);
    this.#refresher = this.refresher({
      keyOf: () => JSON.stringify([this.#query, this.view.now.data]),
      ask: () => this.#load(),
      pauseMs: DIAGNOSTICS_PAUSE_MS,
    });
  }

  draw() {
    const { session, table, as, filter } = this.view.now;
    const query = JSON.stringify([session, table, as, filter, this.#severity]);
    if (query !== this.#query) this.#replace({ table, as, filter, severity: this.#severity });
    this.#query = query;
    this.#refresher.refresh();
    this.#mark();
  }

  async #load() {
    const paged = this.#paged;
    if (!paged.isLoaded) {
      await paged.reload({ after: 0 });
    } else if (paged.isLast) {
      paged.hasGrown();
      await paged.more("after");
    }
  }

  #replace({ as, ...query }) {
    this.#paged = new PagedList({
      load: async (params) => {
        const found = await this.source.diagnostics(as, { ...query, ...params });
        return pageOf(found, found.diagnostics);
      },
      keyOf: (diagnostic) => diagnostic.id,
      changed: () => this.#mark(),
    });
    this.list = new List({
      label: "Diagnostics",
      id: "diagnostic",
      paged: this.#paged,
      rowOf: diagnosticRow,
      keyOf: (diagnostic) => diagnostic.id,
      nothing: "no diagnostics, or none that match the filter",
      opened: (diagnostic) => this.#open(diagnostic),
    });
    this.root.replaceChildren(this.#severityChoice(), this.list.root);
  }

  #severityChoice() {
    const options = Object.entries(SEVERITIES).map(([value, words]) =>
      element("option", { value, selected: value === this.#severity }, words),
    );
    const choose = (event) => {
      this.#severity = event.target.value;
      this.draw();
    };
    return element(
      "label",
      { class: "pane-choice" },
      "Show ",
      element("select", { onchange: choose }, ...options),
    );
  }

  #open({ message, seq }) {
    if (message !== null) this.navigation.open(message);
    if (seq !== null) this.navigation.moveTo(Math.max(seq, this.model.timeline?.begin ?? 0), { message });
    if (message === null)
      this.view.update({ notice: "this diagnostic has no message: its stream has the bytes" });
  }

  #mark() {
    this.list.draw();
    const current = this.#paged.items.findLast(({ seq }) => seq !== null && seq <= this.model.seq);
    this.list.mark(current?.id ?? null);
  }
}

function diagnosticRow(diagnostic) {
  const { time, severity, code, direction, text } = diagnostic;
  return [
    element("span", { class: "row-time" }, formatSeconds(time)),
    element(
      "span",
      { class: "row-text" },
      element(
        "span",
        { class: `code is-${severity}` },
        element("span", { class: "sign", "aria-hidden": "true" }, severitySign(severity)),
        `${severity}[${code}]`,
      ),
      ` ${direction === "s2c" ? "server" : clientName(diagnostic)}: ${text}`,
    ),
  ];
}
