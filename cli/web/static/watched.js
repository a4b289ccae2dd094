// The session that is looked at: its tables, the course of the one that is chosen, and what comes while it is recorded.

import { Course } from "./course.js";
import { Feed } from "./feed.js";
import { TimelineData } from "./timeline_data.js";
import { differs } from "./where.js";

/** So often the marks and the chart are asked for anew while something comes. */
const TIMELINE_EVERY_MS = 3000;
/** So often what a filter lets through is looked for. */
const FILTER_EVERY_MS = 300;


/** Holds the data of the place where one is; `where` is told when there are more. */
export class Watched {
  version = "";
  sessions = [];
  tables = [];
  players = [];
  /** The player whom alone this page may show, by its key. */
  onlyPlayer = null;
  /** @type {TimelineData|null} */
  timeline = null;
  /** @type {Course|null} */
  course = null;
  #source;
  #where;
  #pictures;
  #feed = null;
  /** The sentence shown because the feed is lost or refused; null while it is open. */
  #lost = null;
  /** The place whose data are here, or on their way. */
  #opened = null;
  #generation = 0;
  #timers = new Map();

  /**
   * @param {import("./source.js").Source} source
   * @param {import("./where.js").Where} where
   * @param {import("./pictures.js").Pictures} pictures
   */
  constructor(source, where, pictures) {
    this.#source = source;
    this.#where = where;
    this.#pictures = pictures;
    where.listen((now, before) => {
      const opened = this.#opened;
      if (opened === null) return;
      if (differs(now, opened, "session")) this.open(now);
      else if (differs(now, opened, "table", "as")) this.#choose();
      else if (differs(now, opened, "filter")) this.#filter();
      else if (differs(now, before, "at")) this.#follow(this.course?.go(this.seq));
    });
  }

  /** The session, as the server describes it. */
  get session() {
    return this.sessions.find(({ number }) => number === this.#where.now.session) ?? null;
  }

  /** The table, likewise. */
  get table() {
    return this.tables.find(({ table }) => table === this.#where.now.table) ?? null;
  }

  /** The number of the event one is at. */
  get seq() {
    const last = this.timeline?.last ?? 0;
    return Math.min(this.#where.now.at ?? last, last);
  }

  /** The event one is at, or the last before that is shown; null if there is none. */
  get event() {
    return this.course?.upTo(this.seq) ?? null;
  }

  /** Open the session at a place, of which an address says only what is not as usual. */
  async open(place) {
    this.#feed?.close();
    this.#feed = null;
    const generation = ++this.#generation;
    this.#opened = null;
    try {
      const found = await this.#source.sessions();
      this.version = found.version;
      this.sessions = found.sessions;
      this.onlyPlayer = found.player;
      const session = this.sessions.find(({ number }) => number === place.session) ?? this.sessions[0];
      if (session === undefined) throw new Error("no session is served here");
      this.#source.session = session.number;
      const { tables, players } = await this.#source.tables();
      if (generation !== this.#generation) return;
      this.tables = tables;
      this.players = players;
      const table = tables.find((one) => one.table === place.table) ?? this.#liveliest();
      // A recorded session is looked at from its first event on; of a live one the newest is shown.
      const begin = session.live || table === null ? null : Math.min(table.first + 1, table.last);
      const at = place.at ?? begin;
      const as = found.player ?? place.as;
      this.#where.go({
        ...place,
        session: session.number,
        table: table?.table ?? null,
        at,
        as,
        live: session.live,
        trouble: "",
        notice: session.lacks ?? this.#source.leftOut ?? "",
      });
      await this.#choose();
    } catch (error) {
      this.#tell(error);
      // Whoever serves it may only be starting.
      if (error.isUnreachable) this.#later("open", 2000, () => this.open(place));
    }
  }

  #liveliest() {
    return this.tables.reduce(
      (most, table) => (most === null || table.last > most.last ? table : most),
      null,
    );
  }

  /** Ask for all that is shown of the table that is chosen now. */
  async #choose() {
    const generation = ++this.#generation;
    this.#feed?.close();
    this.#feed = null;
    this.#opened = this.#where.now;
    const { table, as } = this.#where.now;
    try {
      if (table === null) {
        this.timeline = this.course = null;
      } else {
        const timeline = new TimelineData(await this.#source.timeline(table, as));
        if (generation !== this.#generation) return;
        this.timeline = timeline;
        await this.#filter();
      }
    } catch (error) {
      this.#tell(error);
      if (error.isUnreachable) this.#later("open", 2000, () => this.#choose());
      return;
    }
    if (generation !== this.#generation) return;
    this.#where.go({ trouble: "" });
    if (!this.#source.isFile && this.#where.now.live) this.#listen();
    this.#where.grow();
  }

  /** Another filter: other events are gone through. */
  async #filter() {
    const { table, as, filter } = this.#where.now;
    if (table === null) return;
    this.#opened = this.#where.now;
    const course = new Course(this.#source, { table, as, filter }, () => this.#where.grow());
    this.course = course;
    try {
      await course.go(this.seq);
      if (filter && course === this.course) {
        const isAny = course.stretch.items.length > 0 || !course.stretch.isFirst || !course.stretch.isLast;
        this.#where.go({ notice: isAny ? "" : "no event meets the filter" });
      }
    } catch (error) {
      this.#tell(error);
    }
    this.#where.grow();
  }

  #listen() {
    const { table, as } = this.#where.now;
    const address = (after) => this.#source.liveAddress(table, as, after);
    this.#feed = new Feed(
      address,
      { table, after: this.timeline?.last ?? null },
      {
        events: (data) => this.#take(data),
        growth: () => this.#later("timeline", TIMELINE_EVERY_MS, () => this.#renewTimeline()),
        status: ({ live, trouble, ending }) => this.#where.go({ live, trouble: trouble ?? ending ?? "" }),
        held: () => this.#where.go({ held: this.#where.now.held + 1 }),
        lost: (reason) => this.#lose(reason),
      },
    );
  }

  /** Show why nothing new arrives; null when it does again. */
  #lose(reason) {
    const { trouble } = this.#where.now;
    if (reason !== null) this.#where.go({ trouble: reason });
    else if (trouble !== "" && trouble === this.#lost) this.#where.go({ trouble: "" });
    this.#lost = reason;
  }

  #take({ table, events, picture }) {
    const { as } = this.#where.now;
    if (picture) this.#pictures.take(as, picture);
    const known = this.tables.find((one) => one.table === table);
    if (known === undefined) this.#later("tables", FILTER_EVERY_MS, () => this.#renewTables());
    else if (events.length) known.last = Math.max(known.last, events.at(-1).seq);
    if (table === this.#where.now.table && events.length) {
      this.timeline.take(events);
      this.course.take(events);
      if (this.#where.now.filter)
        this.#later("filter", FILTER_EVERY_MS, () => this.course.stretch.more("after"));
      this.#later("timeline", TIMELINE_EVERY_MS, () => this.#renewTimeline());
    }
    this.#where.grow();
  }

  async #renewTables() {
    const { tables, players } = await this.#source.tables();
    this.tables = tables;
    this.players = players;
    if (this.#where.now.table === null) this.#where.go({ table: this.#liveliest()?.table ?? null });
    this.#where.grow();
  }

  async #renewTimeline() {
    const { table, as } = this.#where.now;
    if (table === null || document.hidden) return;
    const generation = this.#generation;
    const given = await this.#source.timeline(table, as);
    if (generation !== this.#generation) return;
    const known = this.timeline;
    this.timeline = new TimelineData(given);
    // What was pushed while the answer was on its way.
    if (known.last > this.timeline.last) {
      this.timeline.times.push([known.last, known.times.at(-1)[1]]);
      this.timeline.last = known.last;
    }
    if (this.players.length === 0) await this.#renewTables();
    this.#where.grow();
  }

  /** Do something in a while, once, however often it is asked for until then. */
  #later(name, after, task) {
    if (this.#timers.has(name)) return;
    const run = () => {
      this.#timers.delete(name);
      this.#follow(task());
    };
    this.#timers.set(name, setTimeout(run, after));
  }

  #follow(promise) {
    promise?.catch((error) => this.#tell(error));
  }

  #tell(error) {
    this.#where.go(error.isUnreachable ? { trouble: error.message } : { notice: error.message });
  }
}
