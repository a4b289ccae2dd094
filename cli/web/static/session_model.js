// The data of the current session: its tables, the timeline and events of the current table, and live updates.

import { EventStream } from "./event_stream.js";
import { formatCount } from "./format.js";
import { Part } from "./part.js";
import { TableEvents } from "./table_events.js";
import { TimelineData } from "./timeline_data.js";
import { AT_FIRST, PUBLIC, differs } from "./view_state.js";

/** Shortest interval between two requests for the timeline while events arrive; it is longer if a request takes long. */
const TIMELINE_EVERY_MS = 500;
/** Maximum share of the time that is spent on requests for the timeline. */
const TIMELINE_SHARE = 0.05;
/** Interval between two requests for filtered events, and between two for the number of matches. */
const FILTER_EVERY_MS = 300;
const MATCHES_EVERY_MS = 2000;

/** Loads the data for the view state, and notifies it of new data. */
export class SessionModel extends Part {
  version = "";
  sessions = [];
  tables = [];
  /** Labels of the games of the current table by number, if there are several at once. */
  games = {};
  players = [];
  /** The only player whose view the page's key shows; null for the full key. */
  onlyPlayer = null;
  /** Whether the page has a home page. */
  hasHome = false;
  /** The largest file in bytes that can be opened; 0 if none can. */
  opens = 0;
  /** By how many seconds live sessions are shown late; null if they are not. */
  delay = null;
  /** @type {TimelineData|null} */
  timeline = null;
  /** Duration of the last request for it. */
  #timelineMs = 0;
  /** @type {TableEvents|null} */
  tableEvents = null;
  /** The marks of the session, by kind and number. */
  marks = new Map();
  #eventStream = null;
  /** The message shown because the event stream is lost or refused; null while it is open. */
  #connectionError = null;
  /** The view state whose data are loaded or being loaded. */
  #loadedView = null;
  /** Whether the position is to be moved to the first game once that is known. */
  #opensAtGame = false;
  #generation = 0;
  #timers = new Map();

  constructor(context) {
    super(context);
    this.view.listen((now, before) => {
      const loaded = this.#loadedView;
      if (loaded === null) return;
      if (differs(now, loaded, "session")) this.open(now);
      else if (differs(now, loaded, "table", "as")) this.#loadTable();
      else if (differs(now, loaded, "filter")) this.#loadEvents();
      else if (differs(now, before, "at")) this.#reportErrors(this.tableEvents?.load(this.seq));
    });
  }

  /** The current session, as the server describes it. */
  get session() {
    return this.sessions.find(({ number }) => number === this.view.now.session) ?? null;
  }

  /** The current table, as the server describes it. */
  get table() {
    return this.tables.find(({ table }) => table === this.view.now.table) ?? null;
  }

  /** The number of the current event. */
  get seq() {
    const last = this.timeline?.last ?? 0;
    return Math.min(this.view.now.at ?? last, last);
  }

  /** The current event or, if it is not shown, the last one before; null if there is none. */
  get event() {
    return this.tableEvents?.upTo(this.seq) ?? null;
  }

  /** Load the session of a view state, which may be partial; a `home` of null is decided by the server. */
  async open(place) {
    this.#eventStream?.close();
    this.#eventStream = null;
    const generation = ++this.#generation;
    this.#loadedView = null;
    try {
      const found = await this.source.sessions();
      this.version = found.version;
      this.sessions = found.sessions;
      this.onlyPlayer = found.player;
      this.hasHome = found.home ?? false;
      this.opens = found.opens ?? 0;
      this.delay = found.delay ?? null;
      const { wrong = [], ...known } = withSession(place, this.sessions);
      place = known;
      if (this.hasHome && (place.home ?? true)) return this.#showHome(place, wrong);
      const session = this.sessions.find(({ number }) => number === place.session) ?? this.sessions[0];
      if (session === undefined) throw new Error("no session is served here");
      if (place.session !== session.number && place.session !== AT_FIRST.session)
        wrong.push(`there is no session ${place.session} here`);
      this.source.session = session.number;
      const { tables, players } = await this.source.tables();
      if (generation !== this.#generation) return;
      this.tables = tables;
      this.players = players;
      const { opensAtGame, ...opened } = openingView(place, found.player, session, tables, wrong);
      this.#opensAtGame = opensAtGame;
      this.view.update({
        ...opened,
        notice: [...wrong, session.lacks ?? this.source.leftOut].filter(Boolean).join(" · "),
      });
      await checkMessage(this.source, this.view, place.message, opened.as);
      await this.#loadTable();
    } catch (error) {
      this.#showError(error);
      // The server may still be starting.
      if (error.isUnreachable) this.#later("open", 2000, () => this.open(place));
    }
  }

  /** Show the home page, which loads its own data. */
  #showHome({ projector = false }, wrong) {
    this.tables = this.players = [];
    this.timeline = this.tableEvents = null;
    const { session, table, game, at, message } = AT_FIRST;
    const as = projector ? PUBLIC : null;
    this.view.update({ session, table, game, at, as, message, home: true, several: false, projector });
    this.view.update({ playing: false, live: false, notice: wrong.join(" · "), trouble: "" });
    this.view.notifyData();
  }

  /** Load all data of the current table. */
  async #loadTable() {
    const generation = ++this.#generation;
    this.#eventStream?.close();
    this.#eventStream = null;
    this.#loadedView = this.view.now;
    const { table, as } = this.view.now;
    this.#reportErrors(this.#loadMarks(generation));
    try {
      if (table === null) {
        this.timeline = this.tableEvents = null;
      } else {
        const timeline = new TimelineData(await this.source.timeline(table, as));
        if (generation !== this.#generation) return;
        this.timeline = timeline;
        if (this.#opensAtGame) this.view.update({ at: timeline.opening });
        this.#opensAtGame = false;
        await this.#loadEvents();
      }
    } catch (error) {
      this.#showError(error);
      if (error.isUnreachable) this.#later("open", 2000, () => this.#loadTable());
      return;
    }
    if (generation !== this.#generation) return;
    this.view.update({ trouble: "" });
    if (!this.source.isFile && (this.view.now.live || this.session.dissection !== null)) this.#followLive();
    this.view.notifyData();
  }

  async #loadMarks(generation) {
    const { marks } = await this.source.marks(this.view.now.as);
    if (generation === this.#generation) this.#takeMarks(marks);
  }

  /** Mark a message or an event; a note of null removes its mark. Throws `Refused`. */
  async mark(kind, number, note) {
    this.#takeMarks((await this.source.setMark({ kind, number, note })).marks);
  }

  #takeMarks(marks) {
    if (!marks.length && !this.marks.size) return;
    this.marks = new Map(marks.map((mark) => [`${mark.kind} ${mark.number}`, mark]));
    this.view.update({ marks: this.view.now.marks + 1 });
  }

  /** Return a row's mark as text; empty without one. */
  markOf(kind, number) {
    const mark = this.marks.get(`${kind} ${number}`);
    return mark === undefined ? "" : `★ ${mark.note}`;
  }

  /** Load the events for the current filter. */
  async #loadEvents() {
    const { table, as, filter } = this.view.now;
    if (table === null) return;
    this.#loadedView = this.view.now;
    const tableEvents = new TableEvents(this.source, { table, as, filter }, () => this.view.notifyData());
    this.tableEvents = tableEvents;
    try {
      await tableEvents.load(this.seq);
      if (tableEvents === this.tableEvents) await this.#countMatches();
    } catch (error) {
      this.#showError(error);
    }
    this.view.notifyData();
  }

  /** Count what passes the filter, so that nothing in one list leads to another. */
  async #countMatches() {
    const { table, as, filter, matches } = this.view.now;
    if (filter === "") {
      if (matches) this.view.update({ matches: "" });
      return;
    }
    const { is_complete: isComplete, ...counts } = await this.source.matches(table, as, filter);
    if (differs(this.view.now, { table, as, filter }, "table", "as", "filter")) return;
    const words = Object.entries(counts).map(([name, count]) => formatCount(count, name.slice(0, -1)));
    this.view.update({ matches: `${words.join(", ")}${isComplete ? "" : " or more"}` });
  }

  #followLive() {
    const { table, as } = this.view.now;
    const address = (after) => this.source.liveAddress(table, as, after);
    this.#eventStream = new EventStream(
      address,
      { table, after: this.timeline?.last ?? null },
      {
        events: (data) => this.#addEvents(data),
        growth: () => this.#renewTimelineLater(),
        status: ({ live, trouble, ending }) => this.view.update({ live, trouble: trouble ?? ending ?? "" }),
        dissection: (news) => this.#followDissection(news),
        held: () => this.view.update({ held: this.view.now.held + 1 }),
        lost: (reason) => this.#showConnection(reason),
      },
    );
  }

  /** Show the session dissected again, with all of its tables new; or why it cannot be. */
  #followDissection({ dissection, problem }) {
    if (dissection !== this.session.dissection) location.reload();
    else this.view.update({ trouble: problem ?? "" });
  }

  /** Show why no updates arrive; null when they do again. */
  #showConnection(reason) {
    const { trouble } = this.view.now;
    if (reason !== null) this.view.update({ trouble: reason });
    else if (trouble !== "" && trouble === this.#connectionError) this.view.update({ trouble: "" });
    this.#connectionError = reason;
  }

  #addEvents({ table, events, picture }) {
    const { as } = this.view.now;
    if (picture) this.pictures.take(as, picture);
    const known = this.tables.find((one) => one.table === table);
    if (known === undefined) this.#later("tables", FILTER_EVERY_MS, () => this.#renewTables());
    else if (events.length) known.last = Math.max(known.last, events.at(-1).seq);
    if (table === this.view.now.table && events.length) {
      this.timeline.append(events);
      this.tableEvents.append(events);
      if (this.view.now.filter) {
        this.#later("filter", FILTER_EVERY_MS, () => this.tableEvents.paged.more("after"));
        this.#later("matches", MATCHES_EVERY_MS, () => this.#countMatches());
      }
      this.#renewTimelineLater();
    }
    this.view.notifyData();
  }

  async #renewTables() {
    const { tables, players } = await this.source.tables();
    this.tables = tables;
    this.players = players;
    if (this.view.now.table === null) this.view.update({ table: busiestTable(this.tables)?.table ?? null });
    this.view.notifyData();
  }

  #renewTimelineLater() {
    this.#later("timeline", Math.max(TIMELINE_EVERY_MS, this.#timelineMs / TIMELINE_SHARE), () => this.#renewTimeline());
  }

  async #renewTimeline() {
    const { table, as } = this.view.now;
    if (table === null || document.hidden) return;
    const generation = this.#generation;
    const begun = performance.now();
    const data = await this.source.timeline(table, as);
    this.#timelineMs = performance.now() - begun;
    if (generation !== this.#generation) return;
    this.#showConnection(null);
    const known = this.timeline;
    this.timeline = new TimelineData(data);
    // Events may have arrived while the timeline was loaded.
    if (known.last > this.timeline.last) {
      this.timeline.times.push([known.last, known.times.at(-1)[1]]);
      this.timeline.last = known.last;
    }
    if (this.players.length === 0) await this.#renewTables();
    this.view.notifyData();
  }

  /** Run a task once after a delay, however often it is requested until then. */
  #later(name, after, task) {
    if (this.#timers.has(name)) return;
    const run = () => {
      this.#timers.delete(name);
      this.#reportErrors(task());
    };
    this.#timers.set(name, setTimeout(run, after));
  }

  #reportErrors(promise) {
    promise?.catch((error) => this.#showError(error));
  }

  #showError(error) {
    if (!error.isUnreachable) this.view.update({ notice: error.message });
    // It is over when the stream is open again.
    else if (this.view.now.trouble === "") this.#showConnection(error.message);
  }
}

/** Return a view state with the number of the session that its `group` names; of several, the live one. */
export function withSession({ group = null, ...place }, sessions) {
  if (group === null) return place;
  const named = sessions.filter(({ label }) => label === group);
  const found = named.findLast(({ live }) => live) ?? named.at(-1);
  if (found !== undefined) return { ...place, session: found.number, home: false };
  return { ...place, home: true, wrong: [...(place.wrong ?? []), `there is no session ${group} here`] };
}

/** Return the table with the most events; null if there is none. */
export function busiestTable(tables) {
  return tables.reduce((most, table) => (table.last > (most?.last ?? -1) ? table : most), null);
}

/**
 * Return the view state of a session at a place, and whether its position is to be moved to the first game.
 *
 * What is wrong with the place is added to `wrong`. `player` is the only one whose view the key shows.
 */
export function openingView(place, player, session, tables, wrong) {
  const table = tables.find((one) => one.table === place.table) ?? busiestTable(tables);
  // With another table, the rest of a place means something else.
  const isTable = place.table === null || table?.table === place.table;
  if (!isTable) wrong.push(`there is no table ${place.table} in this session`);
  if (isTable && table !== null && place.at > table.last)
    wrong.push(`there is no event ${place.at} at this table: the last one is ${table.last}`);
  const isAt = isTable && place.at !== null;
  const first = session.live || table === null ? null : Math.min(table.first + 1, table.last);
  return {
    ...place,
    home: false,
    session: session.number,
    table: table?.table ?? null,
    at: isAt ? Math.min(place.at, table?.last ?? 0) : first,
    as: player ?? place.as ?? (place.projector ? PUBLIC : null),
    live: session.live,
    trouble: "",
    // A live session opens at its latest event, a recorded one where its first game begins.
    opensAtGame: !isAt && !session.live,
  };
}

/** Close the open message if the session, or the viewer, does not have it, and say so. */
export async function checkMessage(source, view, number, as) {
  if (number === null) return;
  try {
    await source.message(as, number);
  } catch (error) {
    const { message, notice } = view.now;
    if (message === number && !error.isUnreachable)
      view.update({ message: null, notice: [error.message, notice].filter(Boolean).join(" · ") });
  }
}
