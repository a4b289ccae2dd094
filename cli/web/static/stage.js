// The table itself: the drawing, as large as there is room for, and the latest sentence below it.

import { Drawing, shapeFor } from "./drawing.js";
import { byId, element, write } from "./elements.js";
import { Latest } from "./latest.js";
import { differs } from "./where.js";

/** Shows the picture of where one is. Of moments that pass too quickly some are left out, never the last. */
export class Stage {
  #where;
  #watched;
  #pictures;
  #announcer;
  #frame = byId("stage");
  #drawing;
  #shape = "wide";
  /** The picture that is shown; none before the first. */
  #picture = null;
  #latest;

  /**
   * @param {import("./where.js").Where} where
   * @param {import("./watched.js").Watched} watched
   * @param {import("./pictures.js").Pictures} pictures
   * @param {import("./fragments.js").Fragments} fragments
   * @param {import("./announcer.js").Announcer} announcer
   */
  constructor(where, watched, pictures, fragments, announcer) {
    this.#where = where;
    this.#watched = watched;
    this.#pictures = pictures;
    this.#announcer = announcer;
    this.#drawing = new Drawing(byId("board"), fragments);
    this.#latest = new Latest({
      keyOf: () => this.#key(),
      ask: (key) => this.#ask(key),
      failed: (error) => where.go({ notice: error.message }),
    });
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    matchMedia("(orientation: portrait)").addEventListener("change", () => this.#fit());
    this.#fit();
    where.listen((now, before) => {
      if (differs(now, before, "session", "table", "as", "at", "data")) this.#show();
      else if (this.#key() === null) this.#empty();
      if (differs(now, before, "several")) this.#fit();
    });
  }

  #show() {
    if (this.#where.now.table === null) this.#empty();
    else if (this.#key() !== null) this.#latest.look();
  }

  #key() {
    const { session, table, as } = this.#where.now;
    if (table === null || this.#watched.timeline === null) return null;
    return JSON.stringify([session, table, as, this.#watched.seq]);
  }

  async #ask(key) {
    const [session, table, as, at] = JSON.parse(key);
    const picture = await this.#pictures.at({ table, as, at });
    // Of another table, or over another shoulder, nothing is shown that comes late.
    if (!differs(this.#where.now, { session, table, as }, "session", "table", "as")) this.#draw(picture);
  }

  #draw(picture) {
    this.#picture = picture;
    this.#frame.classList.remove("is-empty");
    this.#drawing.show(picture, this.#shape);
    byId("board-words").replaceChildren(...picture.words.map((words) => element("li", {}, words)));
    write(byId("moment"), picture.title);
    write(byId("latest"), picture.latest);
    this.#announcer.say(picture.latest);
  }

  /** No table: why, or that it is only to come. */
  #empty() {
    const { trouble, notice } = this.#where.now;
    this.#frame.classList.add("is-empty");
    write(byId("nothing"), trouble || (this.#watched.session === null ? notice : "") || "no game yet");
    write(byId("latest"), this.#watched.session === null ? "…" : "nothing has happened yet");
  }

  /** Take the sheet that fills the place. */
  #fit() {
    // Where it stands above the panes, it is as high as its sheet: then the window decides.
    const isColumn = matchMedia("(orientation: portrait)").matches;
    const { clientWidth, clientHeight } = this.#frame;
    const shape = isColumn && innerWidth < 900 ? "tall" : shapeFor(clientWidth, clientHeight * 1.15);
    document.documentElement.dataset.shape = shape;
    if (shape === this.#shape && this.#picture) return;
    this.#shape = shape;
    if (this.#picture) this.#drawing.show(this.#picture, shape);
  }
}
