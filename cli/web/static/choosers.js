// The head of the page: what is shown, whether it is live, and the choices of session, table and player.

import { byId, element, printable, write } from "./elements.js";

const EVERYBODY = "everybody";

/** Shows the head, and lets one choose. */
export class Choosers {
  #where;
  #watched;
  #source;
  #drawn = "";
  /** Over whose shoulder one can look; null is everybody's. */
  #lookers = [null];

  /**
   * @param {import("./where.js").Where} where
   * @param {import("./watched.js").Watched} watched
   * @param {import("./moves.js").Moves} moves
   * @param {import("./source.js").Source} source
   */
  constructor(where, watched, moves, source) {
    this.#where = where;
    this.#watched = watched;
    this.#source = source;
    byId("session").addEventListener("change", ({ target }) =>
      where.go({ session: Number(target.value), table: null, at: null, as: null, message: null, notice: "" }),
    );
    byId("table").addEventListener("change", ({ target }) => moves.lookAt(Number(target.value)));
    // Chosen by its place: a player may be called as everybody is here.
    byId("as").addEventListener("change", ({ target }) =>
      where.go({ as: this.#lookers[target.selectedIndex], message: null, notice: "" }),
    );
    where.listen(() => this.#show());
  }

  /** Open the choice of a player, as far as a browser lets one. */
  choosePlayer() {
    const choice = byId("as");
    if (byId("as-choice").hidden) {
      this.#where.go({
        notice:
          this.#watched.onlyPlayer === null
            ? "no player is known yet"
            : "this page shows one player's view only",
      });
      return;
    }
    choice.focus();
    try {
      choice.showPicker();
    } catch {
      // It has the focus: the arrow keys choose.
    }
  }

  #show() {
    const { now } = this.#where;
    const { sessions, tables, players, session, table, onlyPlayer } = this.#watched;
    const names = [
      sessions,
      tables.map(({ title, server }) => [title, server]),
      players,
      onlyPlayer,
      now.session,
      now.table,
      now.as,
      now.live,
    ];
    const drawn = JSON.stringify(names);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    options(
      "session",
      sessions.map(({ number, name }) => [number, name]),
      now.session,
    );
    options(
      "table",
      tables.map((one) => [one.table, `${one.title} ${one.place}`]),
      now.table,
    );
    byId("session-choice").hidden = sessions.length < 2;
    byId("table-choice").hidden = tables.length < 2;
    byId("tables-button").hidden = tables.length < 2;
    byId("as-choice").hidden = onlyPlayer !== null || !players.length;
    // An address may name somebody who is not known yet.
    this.#lookers = [...new Set([null, ...players, now.as])];
    byId("as").replaceChildren(
      ...this.#lookers.map((name) => element("option", { selected: name === now.as }, name ?? EVERYBODY)),
    );
    const title = table?.title ?? "Kiebitz";
    write(byId("title"), title);
    write(
      byId("name"),
      session === null
        ? ""
        : [session.name, onlyPlayer === null ? null : `as ${onlyPlayer}`].filter(Boolean).join(" · "),
    );
    byId("name").title = printable([session?.source, session?.lacks].filter(Boolean).join(" · "));
    const kind = now.live ? "live" : this.#source.isFile ? "recorded · file" : "recorded";
    write(byId("kind"), kind);
    byId("kind").className = `badge ${now.live ? "is-live" : ""}`;
    write(
      byId("when"),
      session?.started
        ? new Date(session.started).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })
        : "",
    );
    document.title = printable(
      [title === "Kiebitz" ? null : title, session?.name, "Kiebitz"].filter(Boolean).join(" · "),
    );
  }
}

function options(id, choices, chosen) {
  byId(id).replaceChildren(
    ...choices.map(([value, words]) => element("option", { value, selected: value === chosen }, words)),
  );
}
