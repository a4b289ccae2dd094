// The data that the page has in itself, where it was written as one file: no server, no network.

import { Refused } from "./source.js";

/** What one player can be told is wrong: what the bytes show. All else is judged from everybody's. */
const FROM_ITS_BYTES = new Set(["malformed", "network"]);

/** Answers from the file; `import("./source.js").Source` says what each question gives. */
export class FileSource {
  isFile = true;
  session = 1;
  #data;
  #texts = new WeakMap();

  /** @param {object} data as `kiebitz export -T html` writes it */
  constructor(data) {
    this.#data = data;
  }

  /**
   * Read the data out of the page.
   *
   * @param {HTMLElement} holder
   */
  static async from(holder) {
    const packed = Uint8Array.from(atob(holder.textContent.trim()), (letter) => letter.codePointAt(0));
    holder.remove();
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new FileSource(await new Response(unpacked).json());
  }

  /** What was left out of it, in a sentence; null if nothing was. */
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

  async events(table, as, asked) {
    const { rows, isFirst, isLast } = this.#some(this.#table(table, as).events, "seq", asked, 200);
    return { events: rows, is_first: isFirst, is_last: isLast };
  }

  /** The pictures say most of it, and the rest would make the file several times as long. */
  async state() {
    return { state: null };
  }

  async picture(table, as, at) {
    const { pictures } = this.#table(table, as);
    const { wide, tall, ...rest } = pictures.findLast(({ seq }) => seq <= at) ?? pictures[0];
    return { table, ...rest, wide: this.#sheet("wide", wide), tall: this.#sheet("tall", tall) };
  }

  async fragments(table, as, at, names) {
    return Object.fromEntries(names.map((name) => [name, this.#data.fragments[Number(name)]]));
  }

  async messages(as, { table, at, ...asked }) {
    let own = this.#onStreams(this.#data.messages, as, table);
    if (at !== undefined) {
      const event = this.#table(table, as).events.findLast(({ seq }) => seq <= at);
      own = own.filter(({ time }) => event !== undefined && time <= event.time);
      asked.before = Infinity;
    }
    const { rows, isFirst, isLast } = this.#some(own, "number", asked, 100);
    return { messages: rows, is_first: isFirst, is_last: isLast };
  }

  async message(as, number) {
    const message = this.#data.messages.find((one) => one.number === number);
    const packed = this.#data.full[number];
    const streams = this.#streamsOf(as);
    if (message === undefined || (streams && !streams.has(message.stream))) {
      throw new Refused(`there is no message #${number} here`, { status: 404 });
    }
    if (packed === undefined) {
      throw new Refused(this.leftOut ?? "the file leaves out this message's bytes", { status: 404 });
    }
    const full = this.#unpacked(packed);
    const event = this.#eventOf(message, as);
    if (as === null || this.#data.player !== null) return { message, event, ...full };
    const flaws = full.flaws.filter(({ group }) => FROM_ITS_BYTES.has(group));
    const copies = full.copies.filter(({ stream }) => streams.has(stream));
    // What the event changed is in the file as everybody's; a player is not told of it.
    return { message, event, ...full, flaws, copies, copies_in_all: copies.length, changes: [] };
  }

  async diagnostics(as, { table, severity = "note", ...asked }) {
    const graver = { error: ["error"], warning: ["error", "warning"], note: ["error", "warning", "note"] }[
      severity
    ];
    const own = this.#onStreams(this.#data.diagnostics, as, table).filter(
      (flaw) => graver.includes(flaw.severity) && (as === null || FROM_ITS_BYTES.has(flaw.group)),
    );
    const { rows, isFirst, isLast } = this.#some(own, "id", asked, 100);
    return { diagnostics: rows, is_first: isFirst, is_last: isLast };
  }

  async streams(as) {
    const own = this.#streamsOf(as);
    return { streams: this.#data.streams.filter(({ number }) => own === null || own.has(number)) };
  }

  async complete() {
    return { from: 0, words: [] };
  }

  async checkFilter() {
    return {};
  }

  #view(as) {
    return this.#data.views[as ?? ""] ?? this.#data.views[this.#data.player ?? ""];
  }

  #table(table, as) {
    const found = this.#view(as)?.tables[table];
    if (found === undefined) throw new Refused("that is not in this file", { status: 404 });
    return found;
  }

  #sheet(shape, flat) {
    const [width, height] = this.#data.sizes[shape];
    const pieces = [];
    for (let place = 0; place < flat.length; place += 3)
      pieces.push([String(flat[place]), flat[place + 1], flat[place + 2]]);
    return { width, height, pieces };
  }

  /** A message in full, of which the file has once what many have in common. */
  #unpacked({ about, text, pieces, ...rest }) {
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

  /** The event that a message tells of, if a player knows of it. */
  #eventOf({ event: number }, as) {
    if (number === null) return null;
    const tables = Object.values(this.#view(as).tables);
    return tables.flatMap(({ events }) => events).find((event) => event.number === number) ?? null;
  }

  #streamsOf(as) {
    const { streams } = this.#view(as);
    return streams ? new Set(streams) : null;
  }

  #onStreams(rows, as, table) {
    const own = this.#streamsOf(as);
    const server = this.#data.tables.find((one) => one.table === table)?.server;
    const at = new Set(
      this.#data.streams
        .filter((stream) => server === undefined || stream.server === server)
        .map(({ number }) => number),
    );
    return rows.filter(({ stream }) => (own === null || own.has(stream)) && at.has(stream));
  }

  /** Those rows that are asked for; the words of a filter are all in each of them. */
  #some(all, key, { after, before, around, limit, filter = "" }, usual) {
    const most = limit ?? usual;
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = words.length
      ? all.filter((row) => words.every((word) => this.#text(row).includes(word)))
      : all;
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
      const { sentence, name, words, kind, actor, player, client, gloss, code, text: said } = row;
      text = [sentence, name, words, kind, actor, player, client, gloss, code, said]
        .filter(Boolean)
        .join(" ")
        .toLowerCase();
      this.#texts.set(row, text);
    }
    return text;
  }
}
