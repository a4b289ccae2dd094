// The pane with the table in words, and its state as a tree.

import { element } from "./elements.js";
import { shorten, formatValue } from "./format.js";
import { Pane, scrolledRegion } from "./pane.js";

const MOST_LETTERS = 400;
/** Maximum number of items shown of a list or an object. */
const MOST_PARTS = 300;

/** The description and the state of the table after the current event; changes are marked. */
export class StatePane extends Pane {
  #before = undefined;
  /** The nodes that the user opened or closed, by path. */
  #open = new Map();

  pauseMs = 200;

  constructor(context) {
    super("state", "State", scrolledRegion("State"), context);
  }

  draw() {
    if (this.view.now.table === null) this.root.replaceChildren(element("p", { class: "nothing" }, "no game yet"));
    else super.draw();
  }

  async load(key) {
    const [, table, as, at] = JSON.parse(key);
    const { state } = await this.source.state(table, as, at);
    const { words } = await this.pictures.at({ table, as, at });
    this.#show(state, words);
  }

  key() {
    const { session, table, as } = this.view.now;
    return table === null || this.model.timeline === null
      ? null
      : JSON.stringify([session, table, as, this.model.seq]);
  }

  #show(state, words) {
    const inWords = words.map((line) => element("li", {}, line));
    const tree =
      state === null
        ? element("p", { class: "faint" }, "the state is not in this file: kiebitz serve shows it")
        : element("div", { class: "tree" }, ...this.#parts(state, this.#before, ""));
    this.root.replaceChildren(
      element("h3", {}, "Picture in words"),
      element("ul", { class: "words" }, ...inWords),
      element("h3", {}, "State"),
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
      const words = element("span", { class: "tree-value" }, shorten(formatValue(value), MOST_LETTERS));
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
    // Closed nodes are built when they are opened.
    if (isOpen) made.append(...this.#parts(value, before, path));
    made.addEventListener("toggle", () => {
      if (made.open !== isOpen || this.#open.has(path)) this.#open.set(path, made.open);
      if (made.open && made.children.length === 1) made.append(...this.#parts(value, before, path));
    });
    return made;
  }
}

/** Whether a list fits on one line: it has only a few plain values. */
function isFlat(value) {
  return (
    Array.isArray(value) &&
    value.length <= 16 &&
    value.every((part) => typeof part !== "object" || part === null)
  );
}

/** Whether a node is open at first: near the root, or small. */
function isOpenAtFirst(path, value) {
  const depth = path.split("/").length - 1;
  return depth < 2 || (depth < 4 && Object.keys(value).length <= 10);
}
