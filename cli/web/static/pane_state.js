// The pane of the state: the table in words, and all that is known of it as a tree.

import { element } from "./elements.js";
import { Latest } from "./latest.js";
import { shortenedWords, valueWords } from "./words.js";

/** So long nothing is asked after an answer, while what is recorded goes on. */
const STATE_PAUSE_MS = 200;
const MOST_LETTERS = 400;
/** So many parts of a list or an object are shown; nothing that one reads has more. */
const MOST_PARTS = 300;

/** Shows the state of the table where one is; what is unlike what was shown before is marked. */
export class StatePane {
  name = "state";
  title = "State";
  root = element("div", {
    class: "pane-body is-scrolled",
    tabindex: 0,
    role: "region",
    "aria-label": "State",
  });
  #source;
  #where;
  #watched;
  #pictures;
  #latest;
  #before = undefined;
  /** What was opened or closed by hand, by its path. */
  #open = new Map();

  /** What all panes are given: see `panes.js`. */
  constructor({ source, where, watched, pictures }) {
    this.#source = source;
    this.#where = where;
    this.#watched = watched;
    this.#pictures = pictures;
    this.#latest = new Latest({
      keyOf: () => this.#key(),
      ask: (key) => this.#ask(key),
      failed: (error) => where.go({ notice: error.message }),
      pauseMs: STATE_PAUSE_MS,
    });
  }

  /** What `y` copies a reference of: the event one is at. */
  get reference() {
    return this.#watched.event?.number ?? null;
  }

  /** Show where one is now. */
  draw() {
    if (this.#key() === null)
      this.root.replaceChildren(element("p", { class: "nothing" }, "nothing is known yet"));
    else this.#latest.look();
  }

  async #ask(key) {
    const [, table, as, at] = JSON.parse(key);
    const { state } = await this.#source.state(table, as, at);
    const { words } = await this.#pictures.at({ table, as, at });
    this.#show(state, words);
  }

  #key() {
    const { session, table, as } = this.#where.now;
    return table === null || this.#watched.timeline === null
      ? null
      : JSON.stringify([session, table, as, this.#watched.seq]);
  }

  #show(state, words) {
    const inWords = words.map((line) => element("li", {}, line));
    const tree =
      state === null
        ? element("p", { class: "faint" }, "is not in this file; kiebitz serve shows it")
        : element("div", { class: "tree" }, ...this.#parts(state, this.#before, ""));
    this.root.replaceChildren(
      element("h3", {}, "What the picture shows"),
      element("ul", { class: "words" }, ...inWords),
      element("h3", {}, "Everything that is known"),
      tree,
    );
    this.#before = state ?? undefined;
  }

  #parts(value, before, path) {
    const entries = Object.entries(value);
    const shown = entries
      .slice(0, MOST_PARTS)
      .map(([name, part]) => this.#part(name, part, before?.[name], `${path}/${name}`));
    if (entries.length > MOST_PARTS)
      shown.push(element("p", {}, `… and ${entries.length - MOST_PARTS} more`));
    return shown;
  }

  #part(name, value, before, path) {
    const isOther = this.#before !== undefined && JSON.stringify(value) !== JSON.stringify(before);
    const label = element("span", { class: "tree-name" }, name);
    const isTree =
      typeof value === "object" && value !== null && Object.keys(value).length > 0 && !isFlat(value);
    if (!isTree) {
      const words = element("span", { class: "tree-value" }, shortenedWords(valueWords(value), MOST_LETTERS));
      return element("p", { class: isOther ? "is-other" : null }, label, " ", words);
    }
    const isOpen = this.#open.get(path) ?? isOpenAtFirst(path, value);
    const made = element(
      "details",
      { open: isOpen, class: isOther ? "is-other" : null },
      element(
        "summary",
        {},
        label,
        element("span", { class: "tree-count" }, ` ${Object.keys(value).length}`),
      ),
    );
    // What is closed is not made.
    if (isOpen) made.append(...this.#parts(value, before, path));
    made.addEventListener("toggle", () => {
      if (made.open !== isOpen || this.#open.has(path)) this.#open.set(path, made.open);
      if (made.open && made.children.length === 1) made.append(...this.#parts(value, before, path));
    });
    return made;
  }
}

/** Whether a list has nothing but short values, which stand on one line. */
function isFlat(value) {
  return (
    Array.isArray(value) &&
    value.length <= 16 &&
    value.every((part) => typeof part !== "object" || part === null)
  );
}

/** What is near the root, and small, is seen at once. */
function isOpenAtFirst(path, value) {
  const depth = path.split("/").length - 1;
  return depth < 2 || (depth < 4 && Object.keys(value).length <= 10);
}
