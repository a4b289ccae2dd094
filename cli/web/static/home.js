// The home page: live tables as a wall with alerts, and recorded sessions, each with a small board.

import { byId, element, printable, write } from "./elements.js";
import { EventStream } from "./event_stream.js";
import { formatClock, formatCount } from "./format.js";
import { PacedText } from "./announcer.js";
import { Part } from "./part.js";
import { differs } from "./view_state.js";
import { Wall } from "./drawing.js";

/** Shows the home page while the view state asks for it. */
export class HomePage extends Part {
  #section = byId("home");
  /** The shown cards by key, each with the elements that change. */
  #cards = new Map();
  #alerts = new Set();
  /** The sessions by number. */
  #sessions = new Map();
  #isWatching = false;
  #boardEvery = 0;
  #stream = null;
  #wall = new Wall(byId("home-live"), () => this.#draw());

  constructor(context) {
    super(context);
    this.view.listen((now, before) => {
      if (differs(now, before, "home") || (now.home && differs(now, before, "as"))) this.#show();
      else if (differs(now, before, "projector")) this.#draw();
    });
  }

  #show() {
    const { home, as } = this.view.now;
    document.documentElement.classList.toggle("is-home", home);
    this.#section.hidden = !home;
    this.#stream?.close();
    this.#stream = null;
    // No board of another view stays until those of this one are loaded.
    for (const card of this.#cards.values()) card.clear();
    if (!home) return;
    document.title = "Kiebitz";
    const handlers = {
      home: (found) => this.#take(found, new Map()),
      sessions: (found) => this.#take(found, this.#sessions),
      lost: (trouble) => this.view.update({ trouble: trouble ?? "" }),
    };
    this.#stream = new EventStream(() => this.source.homeAddress(as), { table: null, after: null }, handlers);
  }

  /** Show sessions, which replace those of the same numbers. */
  #take({ watching = this.#isWatching, sessions, board_every_s: boardEvery }, known) {
    this.#isWatching = watching;
    this.#boardEvery = boardEvery * 1000;
    this.#sessions = known;
    for (const one of sessions) known.set(one.session.number, one);
    this.#draw();
  }

  #draw() {
    if (!this.view.now.home) return;
    const sessions = [...this.#sessions.values()];
    const live = sessions.filter(({ session }) => session.live).sort((one, other) => compareLive(one, other));
    const recorded = sessions
      .filter(({ session }) => !session.live)
      .sort((one, other) => other.started_s - one.started_s);
    const walls = live.flatMap((one) => (one.tables.length ? one.tables : [null]).map((table) => [one, table]));
    byId("home-live").parentElement.hidden = live.length === 0;
    byId("home-recorded").parentElement.hidden = recorded.length === 0;
    this.#arrange("home-live", walls);
    this.#arrange(
      "home-recorded",
      recorded.map((one) => [one, busiest(one.tables)]),
    );
    this.#wall.fit();
    const empty = this.#isWatching
      ? "no session yet: one appears here as soon as it is recorded"
      : "no session is served here";
    write(byId("home-empty"), sessions.length ? this.view.now.notice : empty);
    const counts = [formatCount(sessions.length, "session")];
    if (live.length) counts.push(formatCount(walls.length, "live table"));
    write(byId("home-counts"), counts.join(" · "));
    const { delay } = this.model;
    write(byId("home-late"), live.length && delay !== null ? `${delay} s late` : "");
    this.#announce(walls);
  }

  /** Show cards in a list in this order; existing ones are kept, so that the focus stays. */
  #arrange(id, shown) {
    const list = byId(id);
    const isWall = id === "home-live";
    const { projector, as } = this.view.now;
    const items = shown.map(([one, table]) => {
      const key = `${id} ${one.session.number} ${table?.table.table ?? 0} ${table?.game ?? 0}`;
      if (!this.#cards.has(key)) this.#cards.set(key, new Card());
      const card = this.#cards.get(key);
      card.show(one, table, projector);
      if (table !== null && one.trouble === null) {
        const shape = isWall ? this.#wall.shape : "wide";
        card.draw(this.source.boardAddress(one.session.number, table, as, shape), this.#boardEvery);
      }
      return card.item;
    });
    // Moving an element would take its focus.
    if (items.length !== list.children.length || items.some((item, at) => list.children[at] !== item)) {
      const focused = document.activeElement;
      list.replaceChildren(...items);
      if (list.contains(focused)) focused.focus();
    }
  }

  /** Announce new alerts. */
  #announce(walls) {
    const alerts = new Set(
      walls.flatMap(([one, table]) => alertsOf(one, table).map((alert) => `${titleOf(one, table)}: ${alert}`)),
    );
    const added = [...alerts].filter((alert) => !this.#alerts.has(alert));
    this.#alerts = alerts;
    if (added.length) this.announcer.say(added.join(". "));
  }
}

/** A card: a link to a session's table with a board and the facts; on the wall, a tile. */
class Card {
  #board = element("img", { alt: "", onload: () => this.#loaded(), onerror: () => this.#loaded() });
  #name = element("span", { class: "home-name" });
  #title = element("span", { class: "tile-title", dir: "auto" });
  #latest = element("span", { class: "tile-latest" });
  #text = new PacedText(this.#latest);
  #alerts = element("span", { class: "tile-alerts" });
  #facts = element("span", { class: "home-facts" });
  #link = element(
    "a",
    { class: "tile" },
    this.#title,
    element("span", { class: "tile-board" }, this.#board),
    this.#alerts,
    this.#latest,
    this.#facts,
    this.#name,
  );
  #shown = "";
  #drawnAt = 0;
  #timer = 0;
  #isLoading = false;
  #wanted = null;
  #every = 0;
  item = element("li", {}, this.#link);

  show(one, table, isProjected) {
    const shown = JSON.stringify([one, table, isProjected]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const { session } = one;
    const alerts = alertsOf(one, table);
    const game = table?.game ? `&game=${table.game}` : "";
    const place = table === null ? "" : `&table=${table.table.table}${game}`;
    this.#link.setAttribute("href", `#session=${session.number}${place}${isProjected ? "&projector=1" : ""}`);
    this.#link.classList.toggle("has-alerts", alerts.length > 0);
    write(this.#title, titleOf(one, table));
    this.#title.title = printable([titleOf(one, table), table?.table.title, session.name].filter(Boolean).join(" · "));
    this.#alerts.replaceChildren(...alerts.map((alert) => element("span", {}, `! ${alert}`)));
    const isFinished = Boolean(table?.result);
    this.#link.classList.toggle("is-finished", isFinished);
    this.#link.classList.toggle("is-waiting", !isFinished && Boolean(table?.waiting));
    const last = session.live ? table?.result : one.result;
    this.#text.say(last ?? table?.waiting ?? table?.latest ?? (session.live ? "no client yet" : ""));
    this.#facts.replaceChildren(...joined(factsOf(one)));
    write(this.#name, [session.name, startOf(session)].filter(Boolean).join(" · "));
    this.#board.hidden = table === null || one.trouble !== null;
  }

  /**
   * Load a board, at most one every so many milliseconds. The latest one follows the one being loaded: if that were
   * aborted, a quick game on a slow server would show none.
   */
  draw(address, every) {
    this.#wanted = address;
    this.#every = every;
    if (!this.#isLoading) this.#loadNext();
  }

  /** Show no board. */
  clear() {
    this.#board.removeAttribute("src");
    this.#isLoading = false;
  }

  #loadNext() {
    clearTimeout(this.#timer);
    if (this.#board.getAttribute("src") === this.#wanted) return;
    const rest = this.#drawnAt + this.#every - Date.now();
    if (rest > 0) {
      this.#timer = setTimeout(() => this.#loadNext(), rest);
      return;
    }
    this.#drawnAt = Date.now();
    this.#isLoading = true;
    this.#board.setAttribute("src", this.#wanted);
  }

  #loaded() {
    this.#isLoading = false;
    this.#loadNext();
  }
}

function alertsOf({ trouble, alerts }, table) {
  return trouble ? [trouble] : [...(table?.alerts ?? []), ...alerts];
}

/** Compare live sessions by the numbers in their names. */
function compareLive({ session: one }, { session: other }) {
  return one.name.localeCompare(other.name, "en", { numeric: true }) || one.number - other.number;
}

/** Return texts and lists of names, joined: each name on its own, as some are written from right to left. */
function joined(parts) {
  return parts.flatMap((part, place) => [...(place ? [" · "] : []), ...[part].flat()]);
}

function busiest(tables) {
  return tables.reduce((most, one) => (most === null || one.table.last > most.table.last ? one : most), null);
}

/** Return the name of the session, or else of its table; of several tables, each has its address. */
function titleOf({ session: { label }, tables_in_all: tables }, table) {
  if (table === null) return label ?? "No table yet";
  const { title, place } = table.table;
  const words = [label === null ? `${title} ${place}` : label, label !== null && tables > 1 && place, table.label];
  return words.filter(Boolean).join(" · ");
}

function startOf({ started }) {
  if (started === null) return "";
  return new Date(started).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

function factsOf({ players, players_in_all: all, games, seconds, errors, warnings, tables_in_all: tables }) {
  const more = all > players.length ? [` and ${all - players.length} more`] : [];
  const names = players.flatMap((name, place) => [...(place ? [", "] : []), element("bdi", {}, name)]);
  return [
    names.length ? [...names, ...more] : "",
    games ? formatCount(games, "game") : "",
    tables > 1 ? formatCount(tables, "table") : "",
    seconds !== null ? formatClock(seconds) : "",
    errors ? formatCount(errors, "error") : "",
    warnings ? formatCount(warnings, "warning") : "",
  ].filter(Boolean);
}
