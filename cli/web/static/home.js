// The home page: live tables as a wall with alerts, and recorded sessions, each with a small board.

import { byId, element, write } from "./elements.js";
import { formatClock, formatCount } from "./format.js";
import { differs } from "./view_state.js";

/** Interval between two requests while sessions are recorded, and while only new ones may appear. */
const LIVE_EVERY_MS = 2000;
const WATCH_EVERY_MS = 5000;

/** Shows the home page while the view state asks for it. */
export class HomePage {
  #source;
  #view;
  #announcer;
  #section = byId("home");
  /** The shown cards by key, each with the elements that change. */
  #cards = new Map();
  #alerts = new Set();
  #timer = 0;
  #isAsking = false;

  /**
   * @param {import("./source.js").Source} source
   * @param {import("./view_state.js").ViewState} view
   * @param {import("./announcer.js").Announcer} announcer
   */
  constructor(source, view, announcer) {
    this.#source = source;
    this.#view = view;
    this.#announcer = announcer;
    view.listen((now, before) => {
      if (differs(now, before, "home")) this.#show();
    });
    document.addEventListener("visibilitychange", () => this.#refresh());
  }

  #show() {
    const { home } = this.#view.now;
    document.documentElement.classList.toggle("is-home", home);
    this.#section.hidden = !home;
    if (home) document.title = "Kiebitz";
    this.#refresh();
  }

  async #refresh() {
    clearTimeout(this.#timer);
    if (!this.#view.now.home || document.hidden || this.#isAsking) return;
    this.#isAsking = true;
    let every = LIVE_EVERY_MS;
    try {
      const { watching, sessions, board_every_s: boardEvery } = await this.#source.home();
      this.#draw(sessions, watching, boardEvery * 1000);
      this.#view.update({ trouble: "" });
      if (!sessions.some(({ session }) => session.live)) every = watching ? WATCH_EVERY_MS : 0;
    } catch (error) {
      this.#view.update({ trouble: error.message });
    } finally {
      this.#isAsking = false;
    }
    if (every && this.#view.now.home) this.#timer = setTimeout(() => this.#refresh(), every);
  }

  #draw(sessions, watching, boardEvery) {
    const live = sessions.filter(({ session }) => session.live);
    const recorded = sessions.filter(({ session }) => !session.live);
    const walls = live.flatMap((one) => (one.tables.length ? one.tables : [null]).map((table) => [one, table]));
    this.#arrange("home-live", walls, boardEvery);
    this.#arrange(
      "home-recorded",
      recorded.map((one) => [one, busiest(one.tables)]),
      boardEvery,
    );
    byId("home-live").parentElement.hidden = live.length === 0;
    byId("home-recorded").parentElement.hidden = recorded.length === 0;
    const empty = watching ? "no session yet: one appears here as soon as it is recorded" : "no session is served here";
    write(byId("home-empty"), sessions.length ? "" : empty);
    const counts = [formatCount(sessions.length, "session")];
    if (live.length) counts.push(formatCount(walls.length, "live table"));
    write(byId("home-counts"), counts.join(" · "));
    this.#announce(walls);
  }

  /** Show cards in a list in this order; existing ones are kept, so that the focus stays. */
  #arrange(id, shown, boardEvery) {
    const list = byId(id);
    const items = shown.map(([one, table]) => {
      const key = `${id} ${one.session.number} ${table?.table.table ?? 0}`;
      if (!this.#cards.has(key)) this.#cards.set(key, new Card());
      const card = this.#cards.get(key);
      card.show(one, table);
      if (table !== null && one.trouble === null)
        card.draw(this.#source.boardAddress(one.session.number, table.table.table, table.at), boardEvery);
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
      walls.flatMap(([one, table]) => (table?.alerts ?? []).map((alert) => `${titleOf(one, table)}: ${alert}`)),
    );
    const added = [...alerts].filter((alert) => !this.#alerts.has(alert));
    this.#alerts = alerts;
    if (added.length) this.#announcer.say(added.join(". "));
  }
}

/** A card: a link to a session's table with a board and the facts. */
class Card {
  #board = element("img", { alt: "", loading: "lazy", width: 400, height: 250 });
  #name = element("span", { class: "home-name" });
  #badge = element("span", { class: "badge" });
  #title = element("span", { class: "home-title" });
  #latest = element("span", { class: "home-latest" });
  #alerts = element("span", { class: "home-alerts" });
  #facts = element("span", { class: "home-facts" });
  #link = element(
    "a",
    { class: "home-card" },
    element("span", { class: "home-board" }, this.#board),
    element("span", { class: "home-head" }, this.#title, this.#badge),
    this.#alerts,
    this.#latest,
    this.#facts,
    this.#name,
  );
  #shown = "";
  #drawnAt = 0;
  item = element("li", {}, this.#link);

  show(one, table) {
    const shown = JSON.stringify([one, table]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const { session } = one;
    const alerts = one.trouble ? [one.trouble] : (table?.alerts ?? []);
    const place = table === null ? "" : `&table=${table.table.table}`;
    this.#link.setAttribute("href", `#session=${session.number}${place}`);
    this.#link.classList.toggle("has-alerts", alerts.length > 0);
    write(this.#badge, session.live ? "live" : "");
    this.#badge.classList.toggle("is-live", session.live);
    write(this.#title, titleOf(one, table));
    this.#alerts.replaceChildren(...alerts.map((alert) => element("span", {}, `! ${alert}`)));
    const isFinished = !session.live && one.result !== null;
    write(this.#latest, isFinished ? one.result : (table?.latest ?? ""));
    write(this.#facts, factsOf(one).join(" · "));
    write(this.#name, [session.name, startOf(session)].filter(Boolean).join(" · "));
    this.#board.hidden = table === null || one.trouble !== null;
  }

  /** Load a board, unless another one was loaded less than `every` milliseconds ago. */
  draw(address, every) {
    if (this.#board.getAttribute("src") === address || Date.now() - this.#drawnAt < every) return;
    this.#drawnAt = Date.now();
    this.#board.setAttribute("src", address);
  }
}

function busiest(tables) {
  return tables.reduce((most, one) => (most === null || one.table.last > most.table.last ? one : most), null);
}

/** Return the name of the session, or else of its table; of several tables, each has its address. */
function titleOf({ session: { label }, tables_in_all: tables }, table) {
  if (table === null) return label ?? "No table yet";
  const { title, place } = table.table;
  if (label === null) return `${title} ${place}`;
  return tables > 1 ? `${label} · ${place}` : label;
}

function startOf({ started }) {
  if (started === null) return "";
  return new Date(started).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

function factsOf({ players, players_in_all: all, games, seconds, errors, warnings, tables_in_all: tables }) {
  const more = all > players.length ? ` and ${all - players.length} more` : "";
  return [
    players.length ? players.join(", ") + more : "",
    games ? formatCount(games, "game") : "",
    tables > 1 ? formatCount(tables, "table") : "",
    seconds !== null ? formatClock(seconds) : "",
    errors ? formatCount(errors, "error") : "",
    warnings ? formatCount(warnings, "warning") : "",
  ].filter(Boolean);
}
