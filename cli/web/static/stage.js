// The picture of the table in the available space with the latest sentence below it, and projector mode.

import { PacedText, READABLE_MS } from "./announcer.js";
import { Drawing, shapeFor } from "./drawing.js";
import { byId, element, write } from "./elements.js";
import { Part } from "./part.js";
import { PUBLIC, differs } from "./view_state.js";

/** Shows the picture at the current position. When positions change quickly, some are skipped, but never the last. */
export class Stage extends Part {
  #frame = byId("stage");
  #latest = new PacedText(byId("latest"), () => this.#readableMs());
  #drawing;
  #shape = "wide";
  /** The picture shown; null before the first. */
  #picture = null;
  #refresher;

  constructor(context) {
    super(context);
    this.#drawing = new Drawing(byId("board"), this.fragments);
    this.#refresher = this.refresher({ keyOf: () => this.#key(), ask: (key) => this.#ask(key) });
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    matchMedia("(orientation: portrait)").addEventListener("change", () => this.#fit());
    this.#fit();
    this.view.listen((now, before) => {
      if (differs(now, before, "session", "table", "game", "as", "seat", "at", "data")) this.#show();
      else if (this.#key() === null) this.#empty();
      else if (differs(now, before, "projector") && this.#picture) this.#tell();
      if (differs(now, before, "several")) this.#fit();
    });
  }

  #show() {
    if (this.view.now.table === null) this.#empty();
    else if (this.#key() !== null) this.#refresher.refresh();
  }

  #key() {
    const { session, table, game, as, seat } = this.view.now;
    if (table === null || this.model.timeline === null) return null;
    return JSON.stringify([session, table, game, as, this.model.seq, seat]);
  }

  async #ask(key) {
    const [session, table, game, as, at] = JSON.parse(key);
    const picture = await this.pictures.at({ table, as, at, game });
    // A late picture of another table or viewer is dropped.
    if (!differs(this.view.now, { session, table, game, as }, "session", "table", "game", "as")) this.#draw(picture);
  }

  #draw(picture) {
    this.#picture = picture;
    this.model.games = picture.games ?? {};
    this.#frame.classList.remove("is-empty");
    this.#drawing.show(picture, this.#shape);
    byId("board-words").replaceChildren(...picture.words.map((words) => element("li", {}, words)));
    write(byId("moment"), picture.title);
    this.#tell();
    this.announcer.say(picture.latest);
  }

  /** Show the latest sentence; on a projector, how the game ended rather than who leaves after it. */
  #tell() {
    const { latest, closing } = this.#picture;
    this.#latest.say((this.view.now.projector && closing) || latest);
  }

  /** Show why there is no table. */
  #empty() {
    const { trouble, notice } = this.view.now;
    this.#frame.classList.add("is-empty");
    write(byId("nothing"), trouble || (this.model.session === null ? notice : "") || "no game yet");
    this.#latest.say(this.model.session === null ? "…" : "nothing has happened yet");
  }

  /** Return how long a sentence is shown: on a projector, long enough to be read, unless one moves by hand. */
  #readableMs() {
    const { projector, playing, live, at } = this.view.now;
    return projector && (playing || (live && at === null)) ? READABLE_MS : 0;
  }

  /** Choose the shape that fills the space. */
  #fit() {
    // Above the panes the picture is as high as its shape, so the window decides.
    const isColumn = matchMedia("(orientation: portrait)").matches;
    const { clientWidth, clientHeight } = this.#frame;
    const shape = isColumn && innerWidth < 900 ? "tall" : shapeFor(clientWidth, clientHeight * 1.15);
    document.documentElement.dataset.shape = shape;
    if (shape === this.#shape && this.#picture) return;
    this.#shape = shape;
    if (this.#picture) this.#drawing.show(this.#picture, shape);
  }
}

/** @param {import("./view_state.js").ViewState} view */
export function initProjector(view) {
  const show = (isOn) => document.documentElement.classList.toggle("is-projector", isOn);
  let isSwitched = false;
  view.listen((now, before) => {
    if (!differs(now, before, "projector")) return;
    show(now.projector);
    if (now.projector && now.as === null) {
      isSwitched = true;
      view.update({ as: PUBLIC });
    } else if (!now.projector && isSwitched) {
      isSwitched = false;
      if (now.as === PUBLIC) view.update({ as: null });
    }
    // Browsers permit full screen only after a user action, so not for a link.
    if (now.projector && navigator.userActivation?.isActive) fillScreen();
    else if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  });
  document.addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement) view.update({ projector: false });
  });
  show(view.now.projector);
}

function fillScreen() {
  document.documentElement.requestFullscreen?.().catch(() => {});
}
