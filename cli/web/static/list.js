// A list of any length that shows the loaded rows, and loads more when it is scrolled.

import { element } from "./elements.js";

/** Distance from an end, in pixels, at which more rows are loaded. */
const NEAR_PX = 600;

/**
 * A list with a selected row, or a grid with heads: arrow keys select, Enter or a click opens.
 *
 * @template Item
 */
export class List {
  /** The scrolled element. */
  root;
  #how;
  #rows = new Map();
  #inner;
  #body;
  #heads = null;
  #chosen = null;
  #marked = null;

  /**
   * @param {object} how
   * @param {string} how.label for screen readers
   * @param {string} how.id prefix of the rows' ids
   * @param {import("./paged_list.js").PagedList<Item>} how.paged
   * @param {(item: Item) => (Node|string)[]} how.rowOf returns the content of a row
   * @param {() => HTMLElement[]} [how.headsOf] returns the heads of the columns; then rows have cells
   * @param {(item: Item) => number} how.keyOf
   * @param {string} how.nothing text of an empty list
   * @param {(item: Item) => void} how.opened
   * @param {() => void} [how.entered] handles Enter, instead of opening the selected row
   * @param {boolean} [how.isFollowed] whether selecting a row opens it
   */
  constructor(how) {
    const open = () => this.#open(this.#rows.get(this.#chosen ?? this.#marked));
    this.#how = { entered: open, ...how };
    const role = how.headsOf ? "grid" : "listbox";
    this.#inner = element("div", { role, "aria-label": how.label, tabindex: 0, class: "list-rows" });
    this.#body = this.#inner;
    if (how.headsOf) {
      this.#body = element("div");
      this.#heads = element("div", { role: "row", class: "row-heads", onkeydown: (event) => this.#turnHead(event) });
      this.#showHeads();
      this.#inner.append(this.#heads, this.#body);
    }
    this.root = element("div", { class: "list" }, this.#inner);
    this.root.addEventListener("scroll", () => this.#fill(), { passive: true });
    this.#inner.addEventListener("click", ({ target }) => this.#open(target.closest(".row")));
    this.#inner.addEventListener("keydown", (event) => {
      if (!event.target.closest(".row-heads") && this.press(event)) event.preventDefault();
    });
  }

  /** Show the heads, of which one has the tab stop. */
  #showHeads() {
    this.#heads.replaceChildren(...this.#how.headsOf());
    const stop = this.#heads.querySelector("[aria-sort] button") ?? this.#heads.querySelector("button");
    for (const button of this.#heads.querySelectorAll("button")) button.tabIndex = button === stop ? 0 : -1;
  }

  /** The arrow keys move between heads. */
  #turnHead(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = [...this.#heads.querySelectorAll("button")];
    buttons.at((buttons.indexOf(event.target) + by) % buttons.length).focus();
  }

  /** Show the loaded rows; the first visible row keeps its position. */
  draw() {
    const { items, isFirst, isLast, isLoaded } = this.#how.paged;
    this.root.toggleAttribute("data-left-out", !(isFirst && isLast));
    const anchor = this.#anchor();
    const rows = new Map();
    for (const item of items) {
      const key = this.#how.keyOf(item);
      rows.set(key, this.#rows.get(key) ?? this.#row(item, key));
    }
    for (const [key, row] of this.#rows) if (!rows.has(key)) row.remove();
    this.#rows = rows;
    let next = this.#body.firstChild;
    for (const row of rows.values()) {
      if (row === next) next = next.nextSibling;
      else this.#body.insertBefore(row, next);
    }
    while (next !== null) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
    if (!items.length && isLoaded)
      this.#body.replaceChildren(element("p", { class: "nothing" }, this.#how.nothing));
    if (anchor !== null && rows.has(anchor.key))
      this.root.scrollTop += rows.get(anchor.key).offsetTop - anchor.top;
    this.#show();
  }

  /** Show the contents of all rows again, as something else that they show has changed. */
  renew() {
    if (this.#heads) this.#showHeads();
    for (const item of this.#how.paged.items) this.#rows.get(this.#how.keyOf(item))?.replaceChildren(...this.#how.rowOf(item));
  }

  /** Mark the row of the current position. If it has changed, scroll it into view and drop the selection. */
  mark(key) {
    if (key === this.#marked) return;
    this.#marked = key;
    this.#chosen = null;
    this.#show();
    this.#intoSight(this.#rows.get(key));
  }

  /** The item of the selected row, or else of the marked one. */
  get item() {
    const key = this.#chosen ?? this.#marked;
    return this.#how.paged.items.find((item) => this.#how.keyOf(item) === key) ?? null;
  }

  #row(item, key) {
    return element(
      "div",
      {
        role: this.#heads ? "row" : "option",
        id: `${this.#how.id}-${key}`,
        "data-key": key,
        class: "row",
        "aria-selected": "false",
      },
      ...this.#how.rowOf(item),
    );
  }

  #show() {
    for (const row of this.#body.querySelectorAll(".is-here, [aria-selected=true]")) {
      row.classList.remove("is-here");
      row.setAttribute("aria-selected", "false");
    }
    this.#rows.get(this.#marked)?.classList.add("is-here");
    const chosen = this.#rows.get(this.#chosen ?? this.#marked);
    chosen?.setAttribute("aria-selected", "true");
    if (chosen) this.#inner.setAttribute("aria-activedescendant", chosen.id);
    else this.#inner.removeAttribute("aria-activedescendant");
  }

  /** Handle a key; return whether it did anything. */
  press(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return false;
    if (by !== undefined) this.#choose(by);
    else if (event.key === "Enter") this.#how.entered();
    else return false;
    return true;
  }

  #choose(by) {
    const keys = [...this.#rows.keys()];
    const now = keys.indexOf(this.#chosen ?? this.#marked);
    const chosen = keys[Math.max(0, Math.min(now + by, keys.length - 1))];
    if (chosen === undefined) return;
    this.#chosen = chosen;
    this.#show();
    this.#intoSight(this.#rows.get(chosen));
    if (this.#how.isFollowed) this.#open(this.#rows.get(chosen));
  }

  #open(row) {
    const item = row && this.#how.paged.items.find((one) => String(this.#how.keyOf(one)) === row.dataset.key);
    if (item) this.#how.opened(item);
  }

  #intoSight(row) {
    if (row === undefined) return;
    const [top, bottom] = [row.offsetTop, row.offsetTop + row.offsetHeight];
    const height = this.root.clientHeight;
    // The heads stay above the rows.
    if (top < this.root.scrollTop + this.#body.offsetTop + 8) this.root.scrollTop = top - height / 4;
    else if (bottom > this.root.scrollTop + height - 8)
      this.root.scrollTop = bottom - height + Math.min(height / 4, 80);
  }

  /** Return the first visible row. */
  #anchor() {
    const { scrollTop } = this.root;
    for (const [key, row] of this.#rows) {
      if (row.offsetTop + row.offsetHeight > scrollTop) return { key, top: row.offsetTop };
    }
    return null;
  }

  #fill() {
    const { scrollTop, scrollHeight, clientHeight } = this.root;
    const { isFirst, isLast, items } = this.#how.paged;
    if (!items.length) return;
    // A failed request is repeated by further scrolling.
    if (scrollTop < NEAR_PX && !isFirst) this.#how.paged.more("before").catch(() => {});
    if (scrollHeight - scrollTop - clientHeight < NEAR_PX && !isLast)
      this.#how.paged.more("after").catch(() => {});
  }
}
