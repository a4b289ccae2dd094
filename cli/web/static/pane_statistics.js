// The pane with the rounds of the table, and its statistics.

import { dataTable } from "./data_table.js";
import { element, linkButton } from "./elements.js";
import { formatClock } from "./format.js";
import { Pane, scrolledRegion } from "./pane.js";

const MOST_ROUNDS = 500;
/** Maximum number of events that are searched for turns, and loaded at a time. */
const MOST_EVENTS = 5000;
const PAGE_OF_EVENTS = 1000;

/** The statistics of the table, limited to the events that pass the filter. */
export class StatisticsPane extends Pane {
  pauseMs = 3000;

  constructor(context) {
    super("statistics", "Statistics", scrolledRegion("Statistics"), context);
  }

  draw() {
    if (this.view.now.table === null) this.root.replaceChildren(element("p", { class: "nothing" }, "no game yet"));
    else super.draw();
  }

  key() {
    const { session, table, as, filter, data, live } = this.view.now;
    if (table === null || this.model.timeline === null) return null;
    return JSON.stringify([session, table, as, filter, live ? data : null, this.#game?.game]);
  }

  async load() {
    const { table, as, filter } = this.view.now;
    const { statistics } = await this.source.statistics(table, as, filter);
    const tables = statistics.flatMap(({ title, says, columns, rows }) => [
      rows.length ? dataTable(title, columns, rows) : element("h3", {}, title),
      element("p", { class: "faint" }, says),
    ]);
    const turns = await this.#turns();
    const none = this.source.isFile ? "kiebitz serve and kiebitz stats show statistics" : "no statistics of these events, or of this view";
    this.root.replaceChildren(
      ...this.#rounds(this.model.timeline),
      ...turns,
      ...(tables.length ? tables : [element("p", { class: "faint" }, none)]),
    );
  }

  /** Return a line for each game; a click moves to its beginning. */
  #rounds({ games }) {
    const rows = games.slice(-MOST_ROUNDS).map(({ label, seq, result }) => {
      const begins = this.model.timeline.secondsAt(seq);
      return [{ value: seq, shown: this.#link({ seq }, label) }, { value: begins, shown: formatClock(begins) }, result ?? ""];
    });
    return rows.length ? [dataTable("Rounds", ["round", "begins", "result"], rows)] : [];
  }

  /** The game of the current event. */
  get #game() {
    return this.model.timeline.gameAt(this.model.seq);
  }

  /** Return a line for each turn of the game, if its protocol has such; a click on a move leads to it. */
  async #turns() {
    const { table, as, filter } = this.view.now;
    const kinds = this.model.table?.moves ?? [];
    const game = this.#game;
    if (!kinds.length || game === null) return [];
    const found = [];
    for (let page = null; !page?.is_last && found.length < MOST_EVENTS; ) {
      const after = found.at(-1)?.seq ?? game.seq - 1;
      page = await this.source.events(table, as, { filter, after, limit: PAGE_OF_EVENTS });
      found.push(...page.events);
    }
    const turns = [];
    for (const event of found) {
      const { kind, actor } = event;
      if (!kinds.includes(kind) || event.game !== game.game) continue;
      if (kind === kinds[0] || actor !== turns.at(-1)?.[0].actor) turns.push([]);
      turns.at(-1).push(event);
    }
    const rows = turns.map((moves, place) => [
      { value: place, shown: this.#link(moves[0], String(place + 1)) },
      moves[0].actor,
      { value: moves[0].time, shown: formatClock(moves[0].time) },
      { value: moves.length, shown: element("span", {}, ...moves.map((move) => this.#link(move))) },
    ]);
    return rows.length ? [dataTable("Turns", ["turn", "player", "begins", "moves"], rows)] : [];
  }

  /** Return a link to an event, by default with its sentence without the player. */
  #link({ seq, sentence, actor }, words = sentence.replace(`${actor} `, "")) {
    return linkButton(words, () => this.navigation.moveTo(seq));
  }
}
