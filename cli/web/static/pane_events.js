// The pane of events: what happened, line by line, with where one is.

import { element } from "./elements.js";
import { List } from "./list.js";
import { secondsWords } from "./words.js";

/** Lists the events of the course. */
export class EventsPane {
  name = "events";
  title = "Events";
  root = element("div", { class: "pane-body" });
  #watched;
  #moves;
  #course = null;
  #list = null;

  /** What all panes are given: see `panes.js`. */
  constructor({ watched, moves }) {
    this.#watched = watched;
    this.#moves = moves;
  }

  /** What `y` copies a reference of: the event one is at. */
  get reference() {
    return this.#watched.event?.number ?? null;
  }

  /** Do what a key does in the list; whether it does anything. */
  press(event) {
    return this.#list?.press(event) ?? false;
  }

  /** Show where one is now. */
  draw() {
    const { course, seq } = this.#watched;
    if (course === null) {
      this.root.replaceChildren(
        element("p", { class: "nothing" }, "no game yet: nobody plays, as far as is known"),
      );
      this.#course = null;
      return;
    }
    if (course !== this.#course) this.#take(course);
    this.#list.draw();
    this.#list.mark(course.upTo(seq)?.seq ?? null);
  }

  #take(course) {
    this.#course = course;
    this.#list = new List({
      label: "Events",
      id: "event",
      stretch: course.stretch,
      rowOf: (event) => [
        element("span", { class: "row-time" }, secondsWords(event.time)),
        element(
          "span",
          { class: "row-text" },
          event.altered ? `${event.sentence} · altered[${event.altered}]` : event.sentence,
        ),
        element("span", { class: "row-id" }, `#${event.number}`),
      ],
      keyOf: (event) => event.seq,
      nothing: "nothing has happened yet, or nothing of it meets the filter",
      opened: (event) => this.#moves.beAt(event.seq),
      isFollowed: true,
    });
    this.root.replaceChildren(this.#list.root);
  }
}
