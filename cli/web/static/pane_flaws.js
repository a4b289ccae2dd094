// The pane of flaws: what was wrong, and whose fault it was.

import { element } from "./elements.js";
import { Latest } from "./latest.js";
import { List } from "./list.js";
import { Stretch } from "./stretch.js";
import { clientWords, secondsWords, signOf } from "./words.js";

const SEVERITIES = { error: "errors", warning: "errors and warnings", note: "all, with notes" };

/** So long nothing is asked after an answer, while what is recorded goes on. */
const FLAWS_PAUSE_MS = 1000;

/** Lists the diagnostics of the table. */
export class FlawsPane {
  name = "flaws";
  title = "Flaws";
  root = element("div", { class: "pane-body" });
  #source;
  #where;
  #watched;
  #moves;
  #severity = "note";
  #list = null;
  #stretch = null;
  #of = null;
  #latest;

  /** What all panes are given: see `panes.js`. */
  constructor({ source, where, watched, moves }) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#moves = moves;
    this.#latest = new Latest({
      keyOf: () => JSON.stringify([this.#of, this.#where.now.data]),
      ask: () => this.#more(),
      failed: (error) => where.go({ notice: error.message }),
      pauseMs: FLAWS_PAUSE_MS,
    });
  }

  /** What `y` copies a reference of: the event one is at. */
  get reference() {
    return this.#watched.event?.number ?? null;
  }

  /** Do what a key does in the list; whether it does anything. */
  press(event) {
    return this.#list?.press(event) ?? false;
  }

  /** Show where one is now. */
  draw() {
    const { session, table, as, filter } = this.#where.now;
    const of = JSON.stringify([session, table, as, filter, this.#severity]);
    if (of !== this.#of) this.#take(of, { table, as, filter });
    this.#latest.look();
    this.#mark();
  }

  async #more() {
    const stretch = this.#stretch;
    if (!stretch.isLoaded) {
      await stretch.reload({ after: 0 });
    } else if (stretch.isLast) {
      stretch.hasGrown();
      await stretch.more("after");
    }
  }

  #take(of, { table, as, filter }) {
    this.#of = of;
    const severity = this.#severity;
    this.#stretch = new Stretch({
      load: async (asked) => {
        const found = await this.#source.diagnostics(as, { table, filter, severity, ...asked });
        return { items: found.diagnostics, isFirst: found.is_first, isLast: found.is_last };
      },
      keyOf: (flaw) => flaw.id,
      changed: () => this.#mark(),
    });
    this.#list = new List({
      label: "Flaws",
      id: "flaw",
      stretch: this.#stretch,
      rowOf: flawRow,
      keyOf: (flaw) => flaw.id,
      nothing: "nothing is wrong, or nothing that meets the filter",
      opened: (flaw) => this.#open(flaw),
    });
    this.root.replaceChildren(this.#choice(), this.#list.root);
  }

  #choice() {
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

  #open(flaw) {
    if (flaw.message !== null) this.#moves.open(flaw.message);
    if (flaw.seq !== null)
      this.#moves.beAt(Math.max(flaw.seq, this.#watched.timeline?.begin ?? 0), { message: flaw.message });
    if (flaw.message === null)
      this.#where.go({ notice: "no message was made out there; its stream has the bytes" });
  }

  #mark() {
    this.#list.draw();
    const { seq } = this.#watched;
    this.#list.mark(this.#stretch.items.findLast((flaw) => flaw.seq !== null && flaw.seq <= seq)?.id ?? null);
  }
}

function flawRow(flaw) {
  const who = flaw.direction === "s2c" ? "server" : clientWords(flaw);
  return [
    element("span", { class: "row-time" }, secondsWords(flaw.time)),
    element(
      "span",
      { class: "row-text" },
      element(
        "span",
        { class: `code is-${flaw.severity}` },
        element("span", { class: "sign", "aria-hidden": "true" }, signOf(flaw.severity)),
        `${flaw.severity}[${flaw.code}]`,
      ),
      ` ${who}: ${flaw.text}`,
    ),
  ];
}
