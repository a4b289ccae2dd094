// The pane with one message in full: what it is, its bytes beside what took them, flaws, event, changes and copies.

import { byteRows } from "./byte_rows.js";
import { element } from "./elements.js";
import { Latest } from "./latest.js";
import { linked } from "./linked.js";
import { clientWords, countWords, shortenedWords, valueWords } from "./words.js";

/** So many bytes and pieces are shown at first. */
const FIRST_BYTES = 1024;
const FIRST_PIECES = 300;
const MOST_OF_VALUE = 120;
const MOST_OF_STATE = 200;
const MOST_CHANGES = 40;
const MESSAGE_PAUSE_MS = 200;
/** Messages at a moment among which the one is looked for that tells of its event. */
const LOOKED_AT = 50;

/** Shows the message that was opened, or else the first that told of the event one is at. */
export class MessagePane {
  name = "message";
  title = "Message";
  root = element("div", {
    class: "pane-body is-scrolled",
    tabindex: 0,
    role: "region",
    "aria-label": "One message in full",
  });
  /** What `y` copies a reference of: the message. */
  reference = null;
  #source;
  #where;
  #watched;
  #moves;
  #latest;

  /** What all panes are given: see `panes.js`. */
  constructor({ source, where, watched, moves }) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#moves = moves;
    this.#latest = new Latest({
      keyOf: () => this.#key(),
      ask: (key) => this.#ask(key),
      failed: (error) => this.#nothing(error.message),
      pauseMs: MESSAGE_PAUSE_MS,
    });
  }

  /** Show it. */
  draw() {
    this.#latest.look();
  }

  async #ask(key) {
    const number = await this.#find();
    // Who looks now may not see what was found for another.
    if (key !== this.#key()) return;
    const shown = number === null ? null : await this.#source.message(this.#where.now.as, number);
    if (key === this.#key()) this.#show(shown);
  }

  #key() {
    const { session, table, as, message } = this.#where.now;
    return JSON.stringify([session, table, as, message ?? `at ${this.#watched.event?.number}`]);
  }

  async #find() {
    const { message, table, as } = this.#where.now;
    const { event } = this.#watched;
    if (message !== null) return message;
    if (event === null) return null;
    const { messages } = await this.#source.messages(as, { table, at: event.seq, limit: LOOKED_AT });
    return messages.find((one) => one.event === event.number)?.number ?? null;
  }

  #nothing(sentence) {
    this.reference = null;
    this.root.replaceChildren(element("p", { class: "nothing" }, sentence));
  }

  #show(shown) {
    this.reference = shown?.message.number ?? null;
    this.root.scrollTop = 0;
    if (shown === null) this.#nothing("no message tells of this event");
    else
      this.root.replaceChildren(
        ...head(shown),
        ...this.#bytes(shown),
        ...this.#event(shown),
        ...this.#copies(shown),
      );
  }

  #bytes(shown) {
    const bytes = Uint8Array.from(atob(shown.data), (letter) => letter.codePointAt(0));
    const { pieces, flaws } = shown;
    const { pieceOf, isFlawed } = marked(bytes, pieces, flaws);
    const rows = byteRows(bytes, pieceOf, isFlawed, Math.min(bytes.length, FIRST_BYTES));
    const dump = element(
      "div",
      { class: "dump", tabindex: 0, role: "group", "aria-label": "Bytes" },
      ...rows,
    );
    if (bytes.length > FIRST_BYTES) {
      const all = () => dump.replaceChildren(...byteRows(bytes, pieceOf, isFlawed, bytes.length));
      dump.append(
        element(
          "button",
          { type: "button", class: "link", onclick: all },
          `all ${countWords(bytes.length, "byte")}`,
        ),
      );
    }
    if (!bytes.length) dump.append(element("p", { class: "nothing" }, "(no bytes)"));
    const about = { class: "pieces", role: "listbox", tabindex: 0, "aria-label": "What took the bytes" };
    const list = element("div", about, ...pieceRows(pieces.slice(0, FIRST_PIECES), flaws, bytes.length));
    if (pieces.length > FIRST_PIECES)
      list.append(element("p", { class: "faint" }, `… and ${pieces.length - FIRST_PIECES} more`));
    linked(dump, list, pieces);
    const rest = shown.left_out
      ? [element("p", { class: "faint" }, `… ${countWords(shown.left_out, "byte")} more, not shown here`)]
      : [];
    return [element("div", { class: "anatomy" }, dump, list), ...rest];
  }

  #event({ event, changes }) {
    if (event === null) return [];
    const told = changes.slice(0, MOST_CHANGES).map((change) => element("li", {}, ...changed(change)));
    if (changes.length > MOST_CHANGES)
      told.push(element("li", {}, `… and ${changes.length - MOST_CHANGES} more`));
    return [
      element("h3", {}, "Event"),
      element(
        "p",
        {},
        element(
          "button",
          { type: "button", class: "link", onclick: () => this.#moves.beAt(event.seq) },
          `#${event.number}`,
        ),
        ` ${event.time.toFixed(6)} s: ${event.sentence}`,
      ),
      element("ul", { class: "changes" }, ...told),
    ];
  }

  #copies({ copies, copies_in_all: count, message }) {
    if (!copies.length) return [];
    const rows = copies.map((copy) => {
      const later = `${Math.abs(copy.seconds * 1000).toFixed(3)} ms ${copy.seconds < 0 ? "earlier" : "later"}`;
      const way = message.direction === "s2c" ? "to" : "from";
      const open = element(
        "button",
        { type: "button", class: "link", onclick: () => this.#where.go({ message: copy.number }) },
        `#${copy.number}`,
      );
      return element("li", {}, open, ` ${way} ${clientWords(copy)} (stream ${copy.stream}), ${later}`);
    });
    if (count > copies.length) rows.push(element("li", {}, `… and ${count - copies.length} more`));
    return [
      element("h3", {}, `${count} other ${count === 1 ? "copy" : "copies"}`),
      element("ul", { class: "changes" }, ...rows),
    ];
  }
}

/** What it is, whose, and where it is specified. */
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

/** What had been sent in place of a message that was altered; nothing if nothing was. */
function sentWords({ name, fields, data }) {
  if (data === null) return "";
  const words = Object.entries(fields ?? {}).map(([field, value]) => `${field}=${valueWords(value)}`);
  const said = name === null ? countWords(atob(data).length, "byte") : [name, ...words].join(" ");
  return shortenedWords(said, MOST_OF_STATE);
}

/** For each byte the innermost piece, and whether a flaw is there; one without bytes is at the next, or the last. */
function marked(bytes, pieces, flaws) {
  const pieceOf = new Array(bytes.length).fill(-1);
  pieces.forEach(({ offset, length }, number) => pieceOf.fill(number, offset, offset + length));
  const isFlawed = new Array(bytes.length).fill(false);
  for (const { offset, length } of flaws) {
    const start = Math.max(0, Math.min(offset, bytes.length - 1));
    isFlawed.fill(true, start, Math.max(start + 1, offset + length));
  }
  return { pieceOf, isFlawed };
}

/** A row for each piece, and below the one in which a flaw begins what is said of it. */
function pieceRows(pieces, flaws, size) {
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
  for (const flaw of flaws) {
    const at = Math.min(flaw.offset, size - 1);
    const found = pieces.findLastIndex(({ offset, length }) => offset <= at && at < offset + length);
    const place = found < 0 ? pieces.length - 1 : found;
    behind.set(place, [...(behind.get(place) ?? []), flawBlock(flaw)]);
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
  if (kind === "unread") return [name, `: not understood · ${production}`];
  const words = value === undefined ? "" : ` = ${shortenedWords(valueWords(value), MOST_OF_VALUE)}`;
  return [name, words, faint(` · ${production}`), length === 0 ? faint(" (no bytes)") : ""];
}

function flawBlock({ severity, code, text, expected, clause, blame, group, offset, length }) {
  const line = (word, words) => (words ? element("p", {}, `${word}: ${words}`) : null);
  return element(
    "div",
    { class: `flaw is-${severity}`, role: "group", "aria-label": `${severity}[${code}]` },
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

/** A step of the state, with what was there before. */
function changed({ path, value, before }) {
  const words = (what) => shortenedWords(valueWords(what), MOST_OF_STATE);
  const was = before === undefined ? "" : `${words(before)} → `;
  return [
    element("span", { class: "faint" }, `${path.join(".")}: `),
    `${was}${value === null ? "(removed)" : words(value)}`,
  ];
}
