// The chart of scores: a line for each player over the timeline. Clicking or dragging moves to an event.

import { byId, element, svgElement, write } from "./elements.js";
import { Part } from "./part.js";

const MOST_LINES = 12;
/** Minimum distance of names, in pixels. */
const LEADING = 15;
const EDGE = 9;
/** Lines differ in their dashes and in the shape at their end; colours are secondary. */
const DASHES = ["", "7 4", "2 4", "10 4 2 4", "12 6", "4 3 1 3"];
const FORMS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
  "M-3.6-3.6h7.2v7.2h-7.2z",
  "M0-4.800 4.600 3.400h-9.200z",
  "M0-5 5 0 0 5-5 0z",
  "M0 4.800-4.600-3.400h9.200z",
  "M-4-1.500h2.500V-4h3v2.500H4v3H1.500V4h-3V1.500H-4z",
];

/** Shows the players' scores over time and at the current event. */
export class Chart extends Part {
  #figure = byId("chart");
  #plot = svgElement("svg", { class: "chart-plot", role: "img" });
  #names = element("ul", { class: "chart-names" });
  #here = svgElement("line", { class: "chart-here" });
  #labels = [];
  #of = null;
  #last = 0;

  constructor(context) {
    super(context);
    this.#figure.append(this.#plot, this.#names);
    const drag = (event) => {
      if (event.buttons & 1) this.#go(event);
    };
    this.#plot.addEventListener("pointerdown", (event) => {
      this.#plot.setPointerCapture(event.pointerId);
      drag(event);
    });
    this.#plot.addEventListener("pointermove", drag);
    new ResizeObserver(() => this.#draw()).observe(this.#figure);
    this.view.listen(() => this.#show());
  }

  #show() {
    const { timeline } = this.model;
    const hasScores = new Set(timeline?.scores?.steps.flatMap(([, row]) => row.filter((score) => score !== null))).size > 1;
    this.#figure.hidden = !hasScores;
    byId("timeline").classList.toggle("has-chart", hasScores);
    if (!hasScores) return;
    if (this.#of !== timeline.scores || this.#last !== timeline.last) this.#draw();
    else this.#mark();
  }

  #draw() {
    const { timeline } = this.model;
    if (!timeline?.scores || this.#figure.hidden) return;
    this.#of = timeline.scores;
    this.#last = timeline.last;
    const { title, steps } = timeline.scores;
    const names = timeline.scores.names.slice(0, MOST_LINES);
    const { clientWidth: width, clientHeight: height } = this.#plot;
    this.#plot.setAttribute("viewBox", `0 0 ${Math.max(width, 1)} ${Math.max(height, 1)}`);
    const values = steps.flatMap(([, row]) => row.filter((value) => value !== null));
    const [low, high] = spanOf(values);
    const y = (value) => height - EDGE - ((value - low) / (high - low)) * (height - 2 * EDGE);
    const x = (seq) => this.#xOf(seq);
    const ground = svgElement("line", { class: "chart-zero", x1: 0, x2: width, y1: y(low), y2: y(low) });
    const most = svgElement("text", { class: "chart-scale", x: 0, y: y(high) + 3 }, String(high));
    const least = svgElement(
      "text",
      { class: "chart-scale", x: 0, y: y(low) - 4 },
      low === 0 ? "" : String(low),
    );
    const lines = names.map((_, place) => {
      const d = stepped(steps, place, x, y, timeline.last);
      return svgElement("path", {
        class: `chart-line is-line-${place % 6}`,
        d,
        "stroke-dasharray": DASHES[place % 6],
      });
    });
    this.#plot.replaceChildren(ground, ...lines, most, least, this.#here);
    this.#here.setAttribute("y1", 0);
    this.#here.setAttribute("y2", height);
    this.#label(names, steps, y, height);
    const left = timeline.scores.names.length - names.length;
    this.#plot.setAttribute(
      "aria-label",
      `${title} over time${left > 0 ? `, without ${left} more players` : ""}`,
    );
    this.#mark();
  }

  /** Place the names near the ends of their lines without overlaps. */
  #label(names, steps, y, height) {
    const lastOf = (place) => steps.findLast(([, row]) => (row[place] ?? null) !== null)?.[1][place] ?? 0;
    const rows = names.map((name, place) => ({ name, place, top: y(lastOf(place)) }));
    rows.sort((one, other) => one.top - other.top);
    rows.forEach((row, number) => {
      if (number) row.top = Math.max(row.top, rows[number - 1].top + LEADING);
    });
    // Names pushed over the lower edge move up again, and push those above.
    for (const [number, row] of rows.toReversed().entries()) {
      row.top = Math.min(row.top, height - 4 - number * LEADING);
    }
    this.#labels = rows.map(({ name, place, top }) => {
      const value = element("b");
      const about = { viewBox: "-6 -6 12 12", "aria-hidden": "true", class: `is-line-${place % 6}` };
      const form = svgElement("svg", about, svgElement("path", { d: FORMS[place % 6] }));
      const label = element("li", { title: name }, form, value, " ", element("span", {}, name));
      label.style.setProperty("top", `${Math.max(top, 4)}px`);
      return { label, value, place };
    });
    this.#names.replaceChildren(...this.#labels.map(({ label }) => label));
  }

  /** Mark the current event, and show the scores there. */
  #mark() {
    const { timeline, seq } = this.model;
    const x = this.#xOf(seq);
    this.#here.setAttribute("x1", x);
    this.#here.setAttribute("x2", x);
    const row = timeline.scores.steps.findLast(([at]) => at <= seq)?.[1];
    for (const { value, place } of this.#labels) write(value, String(row?.[place] ?? "–"));
  }

  #xOf(seq) {
    const { begin, last } = this.model.timeline;
    return (Math.max(seq - begin, 0) / Math.max(last - begin, 1)) * this.#plot.clientWidth;
  }

  #go({ clientX }) {
    const { left, width } = this.#plot.getBoundingClientRect();
    const { begin, last } = this.model.timeline;
    const share = Math.max(0, Math.min((clientX - left) / width, 1));
    this.navigation.moveTo(Math.round(begin + share * (last - begin)));
  }
}

/** Return the range of the chart: from 0, unless all values are far from it. */
function spanOf(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const low = least > 0 && least < most / 2 ? 0 : Math.min(least, most - 1);
  return [low, Math.max(most, low + 1)];
}

/** Return a step line, interrupted where a score is unknown. */
function stepped(steps, place, x, y, last) {
  const path = [];
  let isDrawn = false;
  for (const [seq, row] of steps) {
    const value = row[place] ?? null;
    const at = x(seq).toFixed(1);
    if (isDrawn) path.push(`H${at}`);
    if (value !== null) path.push(isDrawn ? `V${y(value).toFixed(1)}` : `M${at} ${y(value).toFixed(1)}`);
    isDrawn = value !== null;
  }
  if (isDrawn) path.push(`H${x(last).toFixed(1)}`);
  return path.join("");
}
