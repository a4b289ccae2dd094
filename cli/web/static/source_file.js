// The data source of a page written as one file: its data are in the page, without server or network.

import { clientName } from "./format.js";
import { Refused } from "./source.js";
import { PUBLIC } from "./view_state.js";

/** Groups of diagnostics in a player's view: those of the bytes. All others need the full view. */
const FROM_ITS_BYTES = new Set(["malformed", "network"]);

/** What display filters have, and searched words rarely. */
const DISPLAY_FILTER = /[!=<>]=|&&|\|\||[<>]|\b(contains|matches)\b/;

/** Reads from the file; the methods are those of `import("./source.js").Source`. */
export class FileSource {
  isFile = true;
  session = 1;
  #data;
  #texts = new WeakMap();

  /** @param {object} data as written by `kiebitz export -T html` */
  constructor(data) {
    this.#data = data;
  }

  /**
   * Unpack the data of the page.
   *
   * @param {HTMLElement} holder
   */
  static async from(holder) {
    const packed = Uint8Array.from(atob(holder.textContent.trim()), (letter) => letter.codePointAt(0));
    holder.remove();
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new FileSource(await new Response(unpacked).json());
  }

  /** A sentence about data that are not in the file; null if it is complete. */
  get leftOut() {
    return this.#data.left_out;
  }

  async sessions() {
    const { version, player, session } = this.#data;
    return { version, player, sessions: [{ ...session, number: 1, live: false }] };
  }

  async tables() {
    const { tables, players } = this.#data;
    return { tables, players };
  }

  async timeline(table, as) {
    return structuredClone(this.#table(table, as).timeline);
  }

  async events(table, as, params) {
    const { rows, isFirst, isLast } = this.#page(this.#table(table, as).events, "seq", params, 200);
    return { events: rows, is_first: isFirst, is_last: isLast };
  }

  /** States are not included: they would make the file several times as large. */
  async state() {
    return { state: null };
  }

  async picture(table, as, at, chosen = null) {
    const { events, steps, opening } = this.#table(table, as);
    const place = events.findLastIndex(({ seq, game }) => seq <= at && (chosen === null || game === chosen));
    let picture = opening;
    if (place >= 0) {
      const { seq, title, sentence } = events[place];
      const [, drawing, closing, games] = steps[place];
      picture = { seq, title, latest: sentence, drawing, closing, games };
    }
    const { wide, tall, words } = this.#data.drawings[picture.drawing];
    return { table, ...picture, words, wide: this.#sheet("wide", wide), tall: this.#sheet("tall", tall) };
  }

  async fragments(table, as, at, names) {
    return Object.fromEntries(names.map((name) => [name, this.#data.fragments[Number(name)]]));
  }

  async messages(as, { table, at, ...params }) {
    let own = this.#messages(as, table);
    if (at !== undefined) {
      const event = this.#table(table, as).events.findLast(({ seq }) => seq <= at);
      own = own.filter(({ time }) => event !== undefined && time <= event.time);
      params.before = Infinity;
    }
    const { rows, isFirst, isLast } = this.#page(own, "number", params, 100);
    return { messages: rows, is_first: isFirst, is_last: isLast };
  }

  /** Return messages with the events, diagnostics and dropped messages between them. */
  async sequence(table, as, params) {
    const page = await this.messages(as, { table, ...params });
    const [first, last] = [page.messages.at(0), page.messages.at(-1)];
    if (first === undefined) return { ...page, events: [], diagnostics: [], dropped: [] };
    const later = this.#messages(as, table).find(({ number }) => number > last.number);
    const from = page.is_first ? -Infinity : first.time;
    const upTo = page.is_last ? Infinity : later.time;
    const isBetween = ({ time }) => time >= from && (time < upTo || time <= last.time);
    const shown = new Set(page.messages.map(({ number }) => number));
    const reported = new Set(page.messages.map(({ event }) => event));
    const isWhole = !params.filter;
    const isProblem = ({ severity, group }) => severity !== "note" && (as === null || FROM_ITS_BYTES.has(group));
    return {
      ...page,
      events: this.#table(table, as).events.filter(
        (event) => reported.has(event.number) || (isWhole && isBetween(event)),
      ),
      diagnostics: this.#visible(this.#data.diagnostics, as, table).filter(
        (row) =>
          isProblem(row) && (row.message === null ? isWhole && isBetween(row) : shown.has(row.message)),
      ),
      dropped: as === null ? this.#matching(this.#visible(this.#data.dropped, as, table), params).filter(isBetween) : [],
    };
  }

  async message(as, number) {
    const message = this.#messages(as).find((one) => one.number === number);
    const packed = this.#data.full[number];
    const streams = this.#streamsOf(as);
    if (message === undefined) {
      throw new Refused(`message #${number} is not in this file`, { status: 404 });
    }
    if (packed === undefined) {
      throw new Refused(this.leftOut ?? "the file leaves out this message's bytes", { status: 404 });
    }
    const full = this.#unpack(packed);
    const event = this.#eventOf(message, as);
    if (as === null || this.#data.player !== null) return { message, event, ...full };
    const flaws = full.flaws.filter(({ group }) => as !== PUBLIC && FROM_ITS_BYTES.has(group));
    const copies = full.copies.filter(({ stream }) => streams.has(stream));
    // The file has the changes of the full view, which players do not see.
    return { message, event, ...full, flaws, copies, copies_in_all: copies.length, changes: [] };
  }

  async diagnostics(as, { table, severity = "note", ...params }) {
    const graver = { error: ["error"], warning: ["error", "warning"], note: ["error", "warning", "note"] }[
      severity
    ];
    const own = this.#diagnostics(as, table).filter((row) => graver.includes(row.severity));
    const { rows, isFirst, isLast } = this.#page(own, "id", params, 100);
    return { diagnostics: rows, is_first: isFirst, is_last: isLast };
  }

  #diagnostics(as, table) {
    const rows = this.#visible(this.#data.diagnostics, as, table);
    return as === null ? rows : rows.filter(({ group }) => FROM_ITS_BYTES.has(group));
  }

  async streams(as) {
    const own = this.#streamsOf(as);
    return { streams: this.#data.streams.filter(({ number }) => own === null || own.has(number)) };
  }

  async marks(as) {
    return { marks: as === null && this.#data.player === null ? this.#data.marks : [] };
  }

  /** Statistics are not included: kiebitz stats shows them. */
  async statistics() {
    return { statistics: [] };
  }

  async complete() {
    return { from: 0, words: [] };
  }

  async matches(table, as, filter) {
    await this.checkFilter(filter);
    const count = (rows) => this.#matching(rows, { filter }).length;
    return {
      events: count(this.#table(table, as).events),
      messages: count(this.#messages(as, table)),
      diagnostics: count(this.#diagnostics(as, table)),
      is_complete: true,
    };
  }

  async checkFilter(filter) {
    if (DISPLAY_FILTER.test(filter))
      throw new Refused("this file searches for words, such as alice rolls: display filters need kiebitz serve", { status: 400 });
  }

  #view(as) {
    return this.#data.views[as ?? ""] ?? this.#data.views[this.#data.player ?? ""];
  }

  #table(table, as) {
    const found = this.#view(as)?.tables[table];
    if (found === undefined) throw new Refused("this is not in the file", { status: 404 });
    found.events ??= found.steps.map(([event]) => this.#data.events[event]);
    return found;
  }

  #sheet(shape, flat) {
    const [width, height] = this.#data.sizes[shape];
    const pieces = [];
    for (let place = 0; place < flat.length; place += 3)
      pieces.push([String(flat[place]), flat[place + 1], flat[place + 2]]);
    return { width, height, pieces };
  }

  /** Restore a message, whose shared values are indices. */
  #unpack({ about, text, pieces, ...rest }) {
    const { abouts, words } = this.#data;
    return {
      ...rest,
      about: about === null ? null : abouts[about],
      data: btoa(text),
      pieces: pieces.map(([offset, length, depth, kind, production, path, ...value]) => {
        const piece = { offset, length, depth, kind: words[kind], production: words[production], path };
        return value.length ? { ...piece, value: value[0] } : piece;
      }),
    };
  }

  /** Return the event that a message reports, if the viewer may see it. */
  #eventOf({ event: number }, as) {
    if (number === null) return null;
    const tables = Object.keys(this.#view(as).tables);
    return tables.flatMap((table) => this.#table(table, as).events).find((event) => event.number === number) ?? null;
  }

  #streamsOf(as) {
    const { streams } = this.#view(as);
    return streams ? new Set(streams) : null;
  }

  #visible(rows, as, table) {
    const own = this.#streamsOf(as);
    const server = this.#data.tables.find((one) => one.table === table)?.server;
    const at = new Set(
      this.#data.streams
        .filter((stream) => server === undefined || stream.server === server)
        .map(({ number }) => number),
    );
    return rows.filter(({ stream }) => (own === null || own.has(stream)) && at.has(stream));
  }

  /** Return the visible messages, those of the public view without their receivers. */
  #messages(as, table) {
    const { messages } = this.#view(as);
    if (!messages) return this.#visible(this.#data.messages, as, table);
    const isPublic = new Set(messages);
    const rows = this.#data.messages.filter(({ number }) => isPublic.has(number));
    return this.#visible(rows, null, table).map((row) => ({ ...row, client: "all players", player: null, flaw: null }));
  }

  /** Return the rows that contain all words of a filter. */
  #matching(rows, { filter = "" }) {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length
      ? rows.filter((row) => words.every((word) => this.#text(row).includes(word)))
      : rows;
  }

  /** Return the requested rows. */
  #page(all, key, { after, before, around, limit, sort, filter = "" }, usual) {
    const most = limit ?? usual;
    const rows = this.#matching(all, { filter });
    if (sort) {
      const part = sorted(rows, sort).slice(after, after + most);
      return { rows: part, isFirst: after === 0, isLast: after + most >= rows.length };
    }
    const upTo = (number) => rows.findLastIndex((row) => row[key] <= number) + 1;
    let [low, high] = [0, rows.length];
    if (around !== undefined)
      [low, high] = [upTo(around) - Math.ceil(most / 2), upTo(around) + Math.floor(most / 2)];
    else if (before !== undefined) [low, high] = [upTo(before - 1) - most, upTo(before - 1)];
    else [low, high] = [upTo(after ?? -Infinity), upTo(after ?? -Infinity) + most];
    return { rows: rows.slice(Math.max(low, 0), high), isFirst: low <= 0, isLast: high >= rows.length };
  }

  #text(row) {
    let text = this.#texts.get(row);
    if (text === undefined) {
      const { sentence, name, words, kind, actor, player, client, gloss, code, text: sentenceText } = row;
      text = [sentence, name, words, kind, actor, player, client, gloss, code, sentenceText]
        .filter(Boolean)
        .join(" ")
        .toLowerCase();
      this.#texts.set(row, text);
    }
    return text;
  }
}

/** Return rows in the order of a property, descending with a minus before it. */
function sorted(rows, sort) {
  const name = sort.replace("-", "");
  const way = sort === name ? 1 : -1;
  const valueOf = { client: clientName, code: ({ severity, code }) => `${"ewn".indexOf(severity[0])}${code}` }[name];
  const keyed = rows.map((row) => [(valueOf ? valueOf(row) : row[name]) ?? "", row]);
  return keyed.sort(([one], [other]) => way * (one > other ? 1 : one < other ? -1 : 0)).map(([, row]) => row);
}
