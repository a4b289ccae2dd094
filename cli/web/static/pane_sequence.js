// The pane with the messages of the table as a sequence diagram.

import { element, severitySpan, svgElement } from "./elements.js";
import { formatSeconds, shorten } from "./format.js";
import { List } from "./list.js";
import { MessagesPane } from "./pane_messages.js";
import { PUBLIC_LINES, lifelinesOf, stepsOf } from "./sequence_steps.js";
import { PUBLIC } from "./view_state.js";

/** Maximum length of a label in characters; the message in full is one key away. */
const MOST_LABEL_LETTERS = 90;

/** The diagram around the current event: a row for each message and each event, under the names of the players. */
export class SequencePane extends MessagesPane {
  #between = null;
  #lines = { names: [], of: new Map() };
  #steps = [];
  #head = element("div", { class: "step-names" });

  constructor(context) {
    super(context, "sequence", "Sequence", {});
  }

  async request(table, as, params) {
    const between = this.#between;
    const found = await this.source.sequence(table, as, params);
    for (const name of ["events", "diagnostics", "dropped"])
      for (const row of found[name]) between[name].set(row.id, row);
    if (found.messages.some(({ stream }) => !this.#lines.of.has(stream))) await this.#loadLines(as);
    return found;
  }

  replaceList(how) {
    super.replaceList(how);
    this.#between = { events: new Map(), diagnostics: new Map(), dropped: new Map() };
    this.#lines = { names: [], of: new Map() };
    this.#steps = [];
    this.#newList();
  }

  beforeDraw({ items }) {
    const { events, diagnostics, dropped } = this.#between;
    // Of what was loaded with messages that were dropped since, nothing is kept.
    const [from, upTo] = [this.paged.isFirst ? -Infinity : items[0]?.time, items.at(-1)?.time ?? -Infinity];
    const isNear = ({ time }) => time >= from && (this.paged.isLast || time <= upTo);
    const isShown = new Set(items.map(({ event }) => event));
    this.#steps = stepsOf(
      items,
      {
        events: inOrder(events, (event) => isShown.has(event.number) || isNear(event)),
        diagnostics: inOrder(diagnostics, isNear),
        dropped: inOrder(dropped, isNear),
      },
      this.#lines.of,
    );
  }

  current() {
    const { event } = this.model;
    const { message } = this.view.now;
    const opened = message !== null && this.#steps.find(({ numbers }) => numbers?.includes(message));
    const own = opened || (event && this.#steps.find(({ seq }) => seq === event.seq));
    const last = event ? this.#steps.findLast(({ time }) => time <= event.time) : this.#steps.at(-1);
    return (own || last)?.key ?? null;
  }

  async #loadLines(as) {
    const server = this.model.table?.server;
    if (as === PUBLIC) this.#lines = PUBLIC_LINES;
    else {
      const { streams } = await this.source.streams(as);
      this.#lines = lifelinesOf(streams.filter((stream) => stream.server === server && stream.messages > 0));
    }
    this.#newList();
  }

  #newList() {
    this.list = new List({
      label: "Sequence",
      id: "step",
      paged: Object.create(this.paged, {
        items: { get: () => this.#steps },
        more: { value: (side) => this.paged.more(side) },
      }),
      rowOf: (step) => this.#row(step),
      keyOf: ({ key }) => key,
      nothing: "no messages, or none that match the filter",
      opened: (step) => this.#open(step),
    });
    const { names } = this.#lines;
    this.list.root.classList.add("is-sequence");
    this.list.root.style.setProperty("--lines", names.length);
    this.#head.replaceChildren(...names.map((name) => element("span", { title: name }, name)));
    this.list.root.prepend(this.#head);
    this.root.replaceChildren(this.list.root);
  }

  #open({ number, seq }) {
    if (number) this.navigation.open(number);
    else if (seq) this.navigation.moveTo(seq);
  }

  #row(step) {
    return [
      element("span", { class: "row-time" }, formatSeconds(step.time)),
      step.kind === "arrow" ? this.#arrow(step) : this.#note(step),
    ];
  }

  #note({ text, severity, stream }) {
    const place = stream === undefined ? this.#lines.names.length / 2 : (this.#lines.of.get(stream) ?? 0) + 1;
    return element(
      "span",
      { class: `step is-note ${this.#side(place)}${severity ? ` is-${severity}` : ""}` },
      svgElement("svg", { class: "step-drawing", "aria-hidden": "true" }, ...this.#lifelines()),
      element("span", { class: "step-text" }, text),
    );
  }

  #arrow(step) {
    const { names, of } = this.#lines;
    const server = names.length - 1;
    const clients = step.isDropped ? [of.get(step.stream) ?? 0] : [...step.clients].sort((a, b) => a - b);
    const toServer = step.direction === "c2s";
    const called = clients.map((line) => names[line]);
    const isAll = called.length > 1 && called.length === server;
    const who = toServer ? `${called[0]} to server: ` : `server to ${isAll ? "all" : called.join(", ")}: `;
    const [left, right] = [Math.min(...clients), server];
    const kind = step.severity ?? (step.isAltered ? "altered" : "");
    return element(
      "span",
      { class: `step is-arrow ${this.#side((left + right + 1) / 2)}${kind ? ` is-${kind}` : ""}` },
      svgElement(
        "svg",
        { class: "step-drawing", "aria-hidden": "true" },
        ...this.#lifelines(),
        this.#stroke(step, clients, server),
      ),
      element(
        "span",
        { class: "step-text" },
        element("span", { class: "unseen" }, who),
        severitySpan(step.severity),
        element("b", {}, step.name),
        step.content ? ` ${shorten(step.content, MOST_LABEL_LETTERS)}` : "",
      ),
    );
  }

  /** Draw an arrow above the lower edge of its row. */
  #stroke({ direction, isDropped }, clients, server) {
    const toServer = direction === "c2s";
    const [left, right] = [this.#x(clients[0]), this.#x(server)];
    // A message that was not forwarded ends on its way.
    const middle = left + (right - left) * (toServer ? 0.6 : 0.4);
    const [from, to] = isDropped ? (toServer ? [left, middle] : [middle, right]) : [left, right];
    const heads = isDropped ? [middle] : toServer ? [right] : clients.map((line) => this.#x(line));
    const form = isDropped ? "M-5-12 5-2M5-12-5-2" : toServer ? "M0-7-8-11.500v9z" : "M0-7 8-11.500v9z";
    return svgElement(
      "svg",
      { y: "100%", overflow: "visible", class: "step-arrow" },
      svgElement("line", { x1: percent(from), x2: percent(to), y1: -7, y2: -7 }),
      ...heads.map((x) =>
        svgElement("svg", { x: percent(x), overflow: "visible" }, svgElement("path", { d: form })),
      ),
    );
  }

  #lifelines() {
    return this.#lines.names.map((name, line) =>
      svgElement("line", {
        class: "step-line",
        x1: percent(this.#x(line)),
        x2: percent(this.#x(line)),
        y1: 0,
        y2: "100%",
      }),
    );
  }

  #x(line) {
    return ((line + 0.5) * 100) / this.#lines.names.length;
  }

  /** The side on which a text is, by the middle of its arrow in lifelines. */
  #side(middle) {
    const share = middle / this.#lines.names.length;
    return share < 0.4 ? "is-left" : share > 0.6 ? "is-right" : "is-middle";
  }
}

function percent(x) {
  return `${x.toFixed(2)}%`;
}

function inOrder(rows, isShown) {
  return [...rows.values()].filter(isShown).sort((one, other) => one.id - other.id);
}
