// The pane with one message in detail: bytes and their meaning, diagnostics, event, changes and copies.

import { byteRows, linkSelection } from "./byte_rows.js";
import { element, linkButton, markSpan } from "./elements.js";
import { clientName, formatCount, shorten, formatValue } from "./format.js";
import { mayMark, openMark } from "./marks.js";
import { Pane, scrolledRegion } from "./pane.js";

/** Number of bytes and pieces shown at first. */
const FIRST_BYTES = 1024;
const FIRST_PIECES = 300;
const MOST_OF_VALUE = 120;
const MOST_OF_STATE = 200;
const MOST_CHANGES = 40;
/** Space below an explanation that was scrolled to. */
const PAST_FAULT_PX = 24;
/** Number of messages up to an event that are searched for the one that reports it. */
const LOOKED_AT = 50;

/** The opened message, or the first that reports the current event. */
export class MessagePane extends Pane {
  #shownNumber = null;
  pauseMs = 200;

  constructor(context) {
    super("message", "Message", scrolledRegion("Message details"), context);
  }

  get kind() {
    return "message";
  }

  get reference() {
    return this.#shownNumber;
  }

  failed(error) {
    this.#showNothing(error.message);
  }

  async load(key) {
    const number = await this.#find();
    // The viewer may have changed while the message was loaded.
    if (key !== this.key()) return;
    const shown = number === null ? null : await this.source.message(this.view.now.as, number);
    if (key === this.key()) this.#show(shown);
  }

  key() {
    const { session, table, as, message } = this.view.now;
    return JSON.stringify([session, table, as, message ?? `at ${this.model.event?.number}`, this.view.now.marks]);
  }

  async #find() {
    const { message, table, as } = this.view.now;
    const { event } = this.model;
    if (message !== null) return message;
    if (event === null) return null;
    const { messages } = await this.source.messages(as, { table, at: event.seq, limit: LOOKED_AT });
    return messages.find((one) => one.event === event.number)?.number ?? null;
  }

  #showNothing(sentence) {
    this.#shownNumber = null;
    this.root.replaceChildren(element("p", { class: "nothing" }, sentence));
  }

  #show(shown) {
    this.#shownNumber = shown?.message.number ?? null;
    this.root.scrollTop = 0;
    if (shown === null) this.#showNothing("no message reports this event");
    else
      this.root.replaceChildren(
        ...head(shown),
        this.#mark("message", shown.message.number),
        ...this.#bytes(shown),
        ...this.#event(shown),
        ...this.#copies(shown),
      );
    this.#toFault();
  }

  /** Show the bytes of the first error, or else warning, above its explanation. */
  #toFault() {
    const fault = this.root.querySelector(".diagnostic.is-error") ?? this.root.querySelector(".diagnostic.is-warning");
    if (fault === null) return;
    const dump = this.root.querySelector(".dump");
    const row = dump.querySelector(`.is-invalid.is-${fault.dataset.severity}`)?.closest(".dump-row");
    if (row) dump.scrollTop = row.offsetTop - dump.clientHeight / 3;
    const [rootBox, box] = [this.root.getBoundingClientRect(), fault.getBoundingClientRect()];
    // If the page scrolls rather than the pane, the fault is left to the reader.
    if (box.bottom > rootBox.bottom) this.root.scrollTop += box.bottom - rootBox.bottom + PAST_FAULT_PX;
  }

  #bytes(shown) {
    const bytes = Uint8Array.from(atob(shown.data), (letter) => letter.codePointAt(0));
    const { pieces, flaws: diagnostics } = shown;
    const { pieceOf, isInvalid } = marked(bytes, pieces, diagnostics);
    // At least up to the last fault.
    const upTo = Math.max(FIRST_BYTES, isInvalid.findLastIndex(Boolean) + 1);
    const rows = byteRows(bytes, pieceOf, isInvalid, Math.min(bytes.length, upTo));
    const dump = element(
      "div",
      { class: "dump", tabindex: 0, role: "group", "aria-label": "Bytes" },
      ...rows,
    );
    if (bytes.length > upTo) {
      const all = () => dump.replaceChildren(...byteRows(bytes, pieceOf, isInvalid, bytes.length));
      dump.append(linkButton(`all ${formatCount(bytes.length, "byte")}`, all));
    }
    if (!bytes.length) dump.append(element("p", { class: "nothing" }, "(no bytes)"));
    const about = { class: "pieces", role: "listbox", tabindex: 0, "aria-label": "Meaning of the bytes" };
    const list = element("div", about, ...pieceRows(pieces.slice(0, FIRST_PIECES), diagnostics, bytes.length));
    if (pieces.length > FIRST_PIECES)
      list.append(element("p", { class: "faint" }, `… and ${pieces.length - FIRST_PIECES} more`));
    linkSelection(dump, list, pieces);
    const rest = shown.left_out
      ? [element("p", { class: "faint" }, `… ${formatCount(shown.left_out, "byte")} more, not shown here`)]
      : [];
    return [element("div", { class: "message-bytes" }, dump, list), ...rest];
  }

  /** Return the mark of the message or the event, and the button to change it, if the page may. */
  #mark(kind, number) {
    const mark = this.model.markOf(kind, number);
    const words = mark ? "change" : `mark this ${kind}`;
    const change = mayMark(this) ? linkButton(words, () => openMark(this, kind, number)) : "";
    return element("p", { class: "mark-line" }, markSpan(mark), " ", change);
  }

  #event({ event, changes }) {
    if (event === null) return [];
    const items = changes.slice(0, MOST_CHANGES).map((change) => element("li", {}, ...changed(change)));
    if (changes.length > MOST_CHANGES)
      items.push(element("li", {}, `… and ${changes.length - MOST_CHANGES} more`));
    return [
      element("h3", {}, "Event"),
      element(
        "p",
        {},
        linkButton(`#${event.number}`, () => this.navigation.moveTo(event.seq)),
        ` ${event.time.toFixed(6)} s: ${event.sentence}`,
      ),
      this.#mark("event", event.number),
      element("ul", { class: "changes" }, ...items),
    ];
  }

  #copies({ copies, copies_in_all: count, message }) {
    if (!copies.length) return [];
    const rows = copies.map((copy) => {
      const later = `${Math.abs(copy.seconds * 1000).toFixed(3)} ms ${copy.seconds < 0 ? "earlier" : "later"}`;
      const preposition = message.direction === "s2c" ? "to" : "from";
      const open = linkButton(`#${copy.number}`, () => this.view.update({ message: copy.number }));
      return element("li", {}, open, ` ${preposition} ${clientName(copy)} (stream ${copy.stream}), ${later}`);
    });
    if (count > copies.length) rows.push(element("li", {}, `… and ${count - copies.length} more`));
    return [
      element("h3", {}, `${count} other ${count === 1 ? "copy" : "copies"}`),
      element("ul", { class: "changes" }, ...rows),
    ];
  }
}

/** Name, meaning, endpoints and specification of a message. */
function head({ message, about, as_sent: sent }) {
  const { number, name, gloss, time, stream, offset, game, direction, server } = message;
  const meaning = gloss ?? about?.meaning ?? null;
  const client = message.player === null ? message.client : `${message.player} (${message.client})`;
  const facts = {
    from: direction === "c2s" ? client : server,
    to: direction === "c2s" ? server : client,
    at: `${time.toFixed(6)} s, stream ${stream}, from byte ${offset}${game === null ? "" : `, game ${game}`}`,
    clause: about?.clause,
    dialect: about?.deviation,
    altered: sent && `${message.altered}, by ${sent.rule}`,
    "as sent": sent && sentWords(sent),
  };
  const rows = Object.entries(facts)
    .filter(([, words]) => words)
    .flatMap(([word, words]) => [element("dt", {}, word), element("dd", {}, words)]);
  return [
    element("h3", { class: "message-name" }, `#${number} ${name}`),
    meaning === null ? null : element("p", { class: "meaning" }, meaning),
    element("dl", { class: "facts" }, ...rows),
  ].filter(Boolean);
}

/** The original of an altered message in words; empty if the message was inserted. */
function sentWords({ name, fields, data }) {
  if (data === null) return "";
  const words = Object.entries(fields ?? {}).map(([field, value]) => `${field}=${formatValue(value)}`);
  const text = name === null ? formatCount(atob(data).length, "byte") : [name, ...words].join(" ");
  return shorten(text, MOST_OF_STATE);
}

/**
 * Return for each byte its innermost piece, and the severity of the gravest diagnostic that covers it, or null. An empty
 * diagnostic covers the next byte, or the last.
 */
function marked(bytes, pieces, diagnostics) {
  const pieceOf = new Array(bytes.length).fill(-1);
  pieces.forEach(({ offset, length }, number) => pieceOf.fill(number, offset, offset + length));
  const isInvalid = new Array(bytes.length).fill(null);
  for (const { offset, length, severity } of [...diagnostics].sort(byGravity)) {
    const start = Math.max(0, Math.min(offset, bytes.length - 1));
    isInvalid.fill(severity, start, Math.max(start + 1, offset + length));
  }
  return { pieceOf, isInvalid };
}

const GRAVITY = ["note", "warning", "error"];

/** Compare diagnostics by severity, the gravest last. */
function byGravity({ severity: one }, { severity: other }) {
  return GRAVITY.indexOf(one) - GRAVITY.indexOf(other);
}

/** Return a row for each piece, each followed by the diagnostics that begin in it. */
function pieceRows(pieces, diagnostics, size) {
  const rows = pieces.map((piece, number) => {
    const row = element(
      "div",
      {
        class: "piece",
        role: "option",
        id: `piece-${number}`,
        "data-piece": number,
        "aria-selected": "false",
      },
      ...pieceWords(piece),
    );
    row.style.setProperty("--depth", Math.min(piece.depth, 6));
    return row;
  });
  const behind = new Map();
  for (const diagnostic of diagnostics) {
    const at = Math.min(diagnostic.offset, size - 1);
    const found = pieces.findLastIndex(({ offset, length }) => offset <= at && at < offset + length);
    const place = found < 0 ? pieces.length - 1 : found;
    behind.set(place, [...(behind.get(place) ?? []), diagnosticBlock(diagnostic)]);
  }
  return rows
    .flatMap((row, number) => [row, ...(behind.get(number) ?? [])])
    .concat(rows.length ? [] : (behind.get(-1) ?? []));
}

function pieceWords({ kind, path, production, value, length }) {
  const faint = (words) => element("span", { class: "faint" }, words);
  if (kind === "name") return [element("b", {}, "message"), ` · ${production}`];
  if (!path.length) return kind === "markup" ? [faint(production)] : [production];
  const step = path.at(-1);
  const name = element("b", {}, typeof step === "number" ? `${path.at(-2)}[${step}]` : step);
  if (kind === "unread") return [name, `: not decoded · ${production}`];
  const words = value === undefined ? "" : ` = ${shorten(formatValue(value), MOST_OF_VALUE)}`;
  return [name, words, faint(` · ${production}`), length === 0 ? faint(" (no bytes)") : ""];
}

function diagnosticBlock({ severity, code, text, expected, clause, blame, group, offset, length }) {
  const line = (word, words) => (words ? element("p", {}, `${word}: ${words}`) : null);
  return element(
    "div",
    { class: `diagnostic is-${severity}`, "data-severity": severity, role: "group", "aria-label": `${severity}[${code}]` },
    element("p", {}, element("b", { class: `code is-${severity}` }, `${severity}[${code}]`), `: ${text}`),
    line("place", length > 1 ? `bytes ${offset} to ${offset + length - 1}` : `byte ${offset}`),
    line("expected", expected),
    line("clause", clause),
    blame === "kiebitz"
      ? element("p", {}, "altered by Kiebitz")
      : severity === "note"
        ? null
        : line("blame", `${blame} (${group})`),
  );
}

/** A change of the state, with the previous value. */
function changed({ path, value, before }) {
  const words = (what) => shorten(formatValue(what), MOST_OF_STATE);
  const was = before === undefined ? "" : `${words(before)} → `;
  return [
    element("span", { class: "faint" }, `${path.join(".")}: `),
    `${was}${value === null ? "(removed)" : words(value)}`,
  ];
}
