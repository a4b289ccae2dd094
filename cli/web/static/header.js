// The header of the page: title, live state, and the choice of session, table and viewer.

import { byId, element, printable, write } from "./elements.js";
import { Part } from "./part.js";
import { PUBLIC } from "./view_state.js";

const EVERYTHING = "everything";

/** Shows the header, and applies the user's choices. */
export class Header extends Part {
  #drawn = "";
  /** The available viewers; null is the full view. */
  #lookers = [null];

  constructor(context) {
    super(context);
    byId("session").addEventListener("change", ({ target }) =>
      this.view.update({ session: Number(target.value), table: null, at: null, as: null, seat: null, message: null, notice: "" }),
    );
    byId("table").addEventListener("change", ({ target }) => this.navigation.switchTable(Number(target.value)));
    // By index, as a player's name may equal the label of the full view.
    byId("as").addEventListener("change", ({ target }) =>
      this.view.update({ as: this.#lookers[target.selectedIndex], message: null, notice: "" }),
    );
    this.view.listen(() => this.#show());
  }

  /** Open the choice of a viewer, as far as the browser permits. */
  choosePlayer() {
    const choice = byId("as");
    if (byId("as-choice").hidden) {
      this.view.update({
        notice:
          this.model.onlyPlayer === null
            ? "no player is known yet"
            : this.model.onlyPlayer === PUBLIC
              ? "this page shows the public view only: what all at the table may know"
              : "this page shows one player's view only",
      });
      return;
    }
    choice.focus();
    try {
      choice.showPicker();
    } catch {
      // The choice is focused: the arrow keys work.
    }
  }

  #show() {
    const { now } = this.view;
    const { sessions, tables, players, table, onlyPlayer, hasHome, delay } = this.model;
    const session = now.home ? null : this.model.session;
    const names = [
      sessions,
      tables.map(({ title, server }) => [title, server]),
      players,
      onlyPlayer,
      now.session,
      now.table,
      now.as,
      now.live,
      now.home,
    ];
    const drawn = JSON.stringify(names);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    options(
      "session",
      sessions.map(({ number, name, label }) => [number, label ?? name]),
      now.session,
    );
    options(
      "table",
      tables.map((one) => [one.table, `${one.title} ${one.place}`]),
      now.table,
    );
    byId("session-choice").hidden = sessions.length < 2;
    byId("table-choice").hidden = tables.length < 2;
    byId("home-button").hidden = !hasHome;
    byId("tables-button").hidden = tables.length < 2;
    byId("as-choice").hidden = onlyPlayer !== null || !tables.length;
    // An address may name a player who is not known yet.
    this.#lookers = [...new Set([null, PUBLIC, ...players, now.as])];
    byId("as").replaceChildren(
      ...this.#lookers.map((name) => element("option", { selected: name === now.as }, viewName(name))),
    );
    const game = table?.title ?? "Kiebitz";
    const title = session?.label ?? game;
    write(byId("title"), title);
    write(
      byId("name"),
      session === null
        ? ""
        : [title === game ? null : game, session.name].filter(Boolean).join(" · "),
    );
    // Players hold several phones side by side, so it is there at any width.
    byId("viewer").hidden = onlyPlayer === null;
    write(byId("viewer"), onlyView(onlyPlayer) ?? "");
    byId("name").title = printable([session?.source, session?.lacks].filter(Boolean).join(" · "));
    const live = delay === null ? "live" : `live, ${delay} s late`;
    const late = delay === null || !now.live ? null : `${delay} s late`;
    const player = onlyPlayer === PUBLIC ? null : onlyView(onlyPlayer);
    write(byId("whose"), [session?.label, player, late].filter(Boolean).join(" · "));
    const kind = now.live ? live : this.source.isFile ? "recorded · file" : "recorded";
    write(byId("kind"), session === null ? "" : kind);
    byId("kind").className = `badge ${now.live ? "is-live" : ""}`;
    write(
      byId("when"),
      session?.started
        ? new Date(session.started).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })
        : "",
    );
    document.title = printable(
      [onlyView(onlyPlayer), title === "Kiebitz" ? null : title, session?.name, "Kiebitz"].filter(Boolean).join(" · "),
    );
  }
}

function viewName(view) {
  if (view === null) return EVERYTHING;
  return view === PUBLIC ? "public view" : view;
}

/** Return the only view of a link in words; null for the full link. */
function onlyView(view) {
  if (view === null) return null;
  return view === PUBLIC ? "public view" : `as ${view}`;
}

function options(id, choices, chosen) {
  byId(id).replaceChildren(
    ...choices.map(([value, words]) => element("option", { value, selected: value === chosen }, words)),
  );
}
