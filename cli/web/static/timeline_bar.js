// The timeline slider: a native range input, with marks of games and diagnostics above.

import { byId, element, printable, svgElement, write } from "./elements.js";
import { formatClock, formatCount } from "./format.js";
import { Part } from "./part.js";

/** Number of positions; marks at the same position are merged. */
const PLACES = 400;

/** Shows the timeline of the table and the current position. */
export class TimelineBar extends Part {
  #range = byId("range");
  /** A key of the marks drawn last. */
  #drawn = "";

  constructor(context) {
    super(context);
    this.#range.addEventListener("input", () => this.navigation.moveTo(Number(this.#range.value)));
    this.view.listen(() => this.#show());
  }

  #show() {
    const { timeline, seq, event } = this.model;
    byId("timeline").classList.toggle("is-empty", timeline === null || timeline.last <= timeline.first);
    if (timeline === null) return;
    const range = this.#range;
    const begin = timeline.begin;
    if (range.min !== String(begin)) range.min = begin;
    if (range.max !== String(timeline.last)) range.max = timeline.last;
    if (range.value !== String(seq)) range.value = seq;
    const share = timeline.last > begin ? (seq - begin) / (timeline.last - begin) : 1;
    byId("timeline").style.setProperty("--share", share.toFixed(5));
    const [place, inFull] = positionWords(seq, this.model);
    const clock = formatClock(event?.seq === seq ? event.time : timeline.secondsAt(seq));
    range.setAttribute("aria-valuetext", printable([inFull, clock, event?.sentence].filter(Boolean).join(", ")));
    write(byId("place"), place);
    byId("place").title = inFull;
    write(byId("clock"), clock);
    write(byId("game"), this.#gameWords(timeline, seq));
    const drawn = JSON.stringify([
      timeline.first,
      timeline.last,
      timeline.games.length,
      timeline.errors,
      timeline.warnings,
    ]);
    if (this.#drawn !== drawn) this.#mark(timeline);
    this.#drawn = drawn;
  }

  #gameWords(timeline, seq) {
    const game = timeline.games.find(({ game }) => game === this.view.now.game) ?? timeline.gameAt(seq);
    if (game === null) return "";
    const isOver = game.result && timeline.games.at(-1) === game && seq === timeline.last;
    return isOver ? `${game.label}: ${game.result}` : game.label;
  }

  #mark(timeline) {
    const span = Math.max(timeline.last - timeline.begin, 1);
    const at = (seq) => Math.round((Math.max(seq - timeline.begin, 0) / span) * PLACES);
    const games = new Map();
    for (const { seq } of timeline.games) games.set(at(seq), "game");
    const diagnostics = new Map();
    for (const { seq, severity } of timeline.diagnostics) {
      if (diagnostics.get(at(seq)) !== "error") diagnostics.set(at(seq), severity);
    }
    const marks = [...games, ...diagnostics].map(([place, kind]) => {
      const mark = element("span", { class: `mark is-${kind}` }, kind === "game" ? null : form(kind));
      mark.style.setProperty("--at", (place / PLACES).toFixed(4));
      return mark;
    });
    byId("marks").replaceChildren(...marks);
    const { errors, warnings } = timeline;
    const counts = [errors && formatCount(errors, "error"), warnings && formatCount(warnings, "warning")];
    write(byId("errors"), counts.filter(Boolean).join(", "));
  }
}

/**
 * Return the position by the event's number in the session, as lists and `--at` have it, in short and in full. With
 * several tables, it includes the number at this table.
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

/** Return the mark of a severity: a triangle pointing down for an error, a ring for a warning. */
function form(kind) {
  const shape =
    kind === "error"
      ? svgElement("path", { d: "M0.5 1h9L5 9z" })
      : svgElement("circle", { cx: 5, cy: 5, r: 3.2 });
  return svgElement("svg", { viewBox: "0 0 10 10" }, shape);
}
