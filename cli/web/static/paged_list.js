// The loaded part of a long list, which grows as needed.

/** Maximum number of items kept; those farthest from the last loaded end are dropped. */
const MOST_ITEMS = 600;

/**
 * Items in ascending order of their keys, without gaps.
 *
 * @template Item
 */
export class PagedList {
  /** @type {Item[]} */
  items = [];
  /** Whether the items include the first and the last one of the list. */
  isFirst = true;
  isLast = true;
  /** Whether anything was loaded yet. */
  isLoaded = false;
  #how;
  #pending = { before: null, after: null };
  #generation = 0;

  /**
   * @param {object} how
   * @param {(params: object) => Promise<{items: Item[], isFirst: boolean, isLast: boolean}>} how.load loads items
   *   `after` or `before` a key, or as given to `reload`
   * @param {(item: Item) => number} how.keyOf
   * @param {() => void} how.changed is called when the items change
   */
  constructor(how) {
    this.#how = how;
  }

  /** Load another part of the list. */
  async reload(params) {
    const generation = ++this.#generation;
    this.#pending = { before: null, after: null };
    const found = await this.#how.load(params);
    if (generation !== this.#generation) return;
    this.items = found.items;
    this.isFirst = found.isFirst;
    this.isLast = found.isLast;
    this.isLoaded = true;
    this.#how.changed();
  }

  /**
   * Load more items.
   *
   * @param {"before"|"after"} side
   */
  more(side) {
    if (this.#pending[side] === null) {
      const request = this.#more(side).finally(() => {
        if (this.#pending[side] === request) this.#pending[side] = null;
      });
      this.#pending[side] = request;
    }
    return this.#pending[side];
  }

  /** Append new items at the end; known ones are skipped. */
  append(items) {
    if (!this.isLast || !this.isLoaded) return;
    const fresh = this.#newer(items);
    if (!fresh.length) return;
    this.items = [...this.items, ...fresh];
    this.#trim("after");
    this.#how.changed();
  }

  /** Note that there are more items at the end to load. */
  hasGrown() {
    this.isLast = false;
  }

  /** Return the index of the last item whose key is not greater; -1 if there is none. */
  indexOf(key) {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#how.keyOf(this.items[middle]) <= key) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  async #more(side) {
    if (side === "before" ? this.isFirst : this.isLast) return;
    const generation = this.#generation;
    const end = this.items.at(side === "before" ? 0 : -1);
    // An empty list is loaded from its beginning.
    const found = await this.#how.load(end === undefined ? { after: 0 } : { [side]: this.#how.keyOf(end) });
    if (generation !== this.#generation) return;
    if (side === "before") {
      this.items = [...found.items, ...this.items];
      this.isFirst = found.isFirst;
    } else {
      this.items = [...this.items, ...this.#newer(found.items)];
      this.isLast = found.isLast;
    }
    this.#trim(side);
    this.#how.changed();
  }

  #newer(items) {
    const last = this.items.length ? this.#how.keyOf(this.items.at(-1)) : -Infinity;
    return items.filter((item) => this.#how.keyOf(item) > last);
  }

  #trim(side) {
    const surplus = this.items.length - MOST_ITEMS;
    if (surplus <= 0) return;
    if (side === "before") {
      this.items = this.items.slice(0, MOST_ITEMS);
      this.isLast = false;
    } else {
      this.items = this.items.slice(surplus);
      this.isFirst = false;
    }
  }
}
