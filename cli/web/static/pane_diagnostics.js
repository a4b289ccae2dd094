// The pane with the diagnostics of the table.

import { element } from "./elements.js";
import { clientName, formatSeconds, severitySign } from "./format.js";
import { ListPane } from "./pane.js";

const DIAGNOSTIC_COLUMNS = {
  time: { sort: "time", kind: "row-time", of: ({ time }) => [formatSeconds(time)] },
  code: { sort: "code", of: codeOf },
  player: { sort: "client", of: (row) => [` ${row.direction === "s2c" ? "server" : clientName(row)}: `] },
  text: { sort: "text", of: ({ text }) => [text] },
};
const SEVERITIES = { error: "errors", warning: "errors and warnings", note: "all, with notes" };


/** The list of the table's diagnostics, from a severity on. */
export class DiagnosticsPane extends ListPane {
  #severity = "note";
  #query = null;
  pauseMs = 1000;

  constructor(context) {
    super("diagnostics", "Diagnostics", context, DIAGNOSTIC_COLUMNS, { fixed: "text", natural: "time" });
  }

  draw() {
    const { session, table, as, filter } = this.view.now;
    const query = JSON.stringify([session, table, as, filter, this.#severity, this.sort]);
    if (query !== this.#query) this.#replace({ table, as, filter, severity: this.#severity });
    this.#query = query;
    super.draw();
    this.#mark();
  }

  key() {
    return JSON.stringify([this.#query, this.view.now.data]);
  }

  async load() {
    const { paged } = this;
    if (this.sort) await this.loadSorted();
    else if (!paged.isLoaded) {
      await paged.reload({ after: 0 });
    } else if (paged.isLast) {
      paged.hasGrown();
      await paged.more("after");
    }
  }

  #replace({ as, ...query }) {
    this.replaceList({
      load: (params) => this.source.diagnostics(as, { ...query, ...params }),
      id: "diagnostic",
      rows: "diagnostics",
      keyOf: (diagnostic) => diagnostic.id,
      changed: () => this.#mark(),
      nothing: "no diagnostics, or none that match the filter",
      opened: (diagnostic) => this.#open(diagnostic),
    });
    this.root.prepend(this.#severityChoice());
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
    const { seq: here } = this.model;
    const isHere = ({ seq }) => (this.sort ? seq === here : seq !== null && seq <= here);
    const current = this.paged.items.findLast(isHere);
    this.list.mark(current?.id ?? null);
  }
}

function codeOf({ severity, code }) {
  const sign = element("span", { class: "sign", "aria-hidden": "true" }, severitySign(severity));
  return [element("span", { class: `code is-${severity}` }, sign, `${severity}[${code}]`)];
}
