// The timeline to drag: a native range, with games and flaws marked above its rail by forms of their own.

import { byId, element, printable, svgElement, write } from "./elements.js";
import { clockWords } from "./words.js";

/** Of so many marks, those that fall onto the same place are one. */
const PLACES = 400;

/** Shows the course of the table, and where one is in it. */
export class Bar {
  #watched;
  #range = byId("range");
  /** What is marked now. */
  #drawn = "";

  /**
   * @param {import("./where.js").Where} where
   * @param {import("./watched.js").Watched} watched
   * @param {import("./moves.js").Moves} moves
   */
  constructor(where, watched, moves) {
    this.#watched = watched;
    this.#range.addEventListener("input", () => moves.beAt(Number(this.#range.value)));
    where.listen(() => this.#show());
  }

  #show() {
    const { timeline, seq, event } = this.#watched;
    byId("timeline").classList.toggle("is-empty", timeline === null || timeline.last <= timeline.first);
    if (timeline === null) return;
    const range = this.#range;
    const begin = timeline.begin;
    if (range.min !== String(begin)) range.min = begin;
    if (range.max !== String(timeline.last)) range.max = timeline.last;
    if (range.value !== String(seq)) range.value = seq;
    const share = timeline.last > begin ? (seq - begin) / (timeline.last - begin) : 1;
    byId("timeline").style.setProperty("--share", share.toFixed(5));
    const [place, inFull] = positionWords(seq, this.#watched);
    const clock = clockWords(event?.seq === seq ? event.time : timeline.secondsAt(seq));
    range.setAttribute("aria-valuetext", printable([inFull, clock, event?.sentence].filter(Boolean).join(", ")));
    write(byId("place"), place);
    byId("place").title = inFull;
    write(byId("clock"), clock);
    write(byId("game"), this.#gameWords(timeline, seq));
    const drawn = JSON.stringify([
      timeline.first,
      timeline.last,
      timeline.games.length,
      timeline.flaws.length,
    ]);
    if (this.#drawn !== drawn) this.#mark(timeline);
    this.#drawn = drawn;
  }

  #gameWords(timeline, seq) {
    const game = timeline.gameAt(seq);
    if (game === null) return "";
    const isOver = game.result && timeline.games.at(-1) === game && seq === timeline.last;
    return isOver ? `${game.label}: ${game.result}` : game.label;
  }

  #mark(timeline) {
    const span = Math.max(timeline.last - timeline.begin, 1);
    const at = (seq) => Math.round((Math.max(seq - timeline.begin, 0) / span) * PLACES);
    const games = new Map();
    for (const { seq } of timeline.games) games.set(at(seq), "game");
    const flaws = new Map();
    for (const { seq, severity } of timeline.flaws) {
      if (flaws.get(at(seq)) !== "error") flaws.set(at(seq), severity);
    }
    const marks = [...games, ...flaws].map(([place, kind]) => {
      const mark = element("span", { class: `mark is-${kind}` }, kind === "game" ? null : form(kind));
      mark.style.setProperty("--at", (place / PLACES).toFixed(4));
      return mark;
    });
    byId("marks").replaceChildren(...marks);
    const errors = timeline.flaws.filter(({ severity }) => severity === "error").length;
    write(byId("errors"), errors ? `${errors} ${errors === 1 ? "error" : "errors"}` : "");
  }
}

/**
 * The position by the event's number in the session, as the lists and `--at` have it; of several tables, which
 * event of this one it is, too: short for the eye, and in full.
 */
function positionWords(seq, { timeline, event, tables }) {
  const place = seq - timeline.first;
  const count = timeline.last - timeline.first;
  if (count === 0) return ["no events", "no events"];
  if (tables.length < 2) return [`#${place} of ${count}`, `#${place} of ${count}`];
  const among = `${place} of ${count}`;
  const [short, full] = event?.seq === seq ? [`#${event.number} (${among})`, `#${event.number}, `] : [among, ""];
  return [short, `${full}${among} at this table`];
}

/** An error is a triangle that stands on its point, a warning a ring. */
function form(kind) {
  const shape =
    kind === "error"
      ? svgElement("path", { d: "M0.5 1h9L5 9z" })
      : svgElement("circle", { cx: 5, cy: 5, r: 3.2 });
  return svgElement("svg", { viewBox: "0 0 10 10" }, shape);
}
