// A stretch of a long list: what is around the place one looks at, and more of it as it is needed.

/** So many are kept; of more, those are let go that are farthest from where one is going. */
const MOST_ITEMS = 600;

/**
 * Items in ascending order of their keys, without a hole between two of them.
 *
 * @template Item
 */
export class Stretch {
  /** @type {Item[]} */
  items = [];
  /** Whether nothing comes before them, or after them. */
  isFirst = true;
  isLast = true;
  /** Whether anything was asked for yet. */
  isLoaded = false;
  #load;
  #keyOf;
  #changed;
  #asked = { before: null, after: null };
  #generation = 0;

  /**
   * @param {object} how
   * @param {(asked: object) => Promise<{items: Item[], isFirst: boolean, isLast: boolean}>} how.load asks for
   *   those `after` or `before` a key, or for what else `reload` is given
   * @param {(item: Item) => number} how.keyOf
   * @param {() => void} how.changed is called when the items are others
   */
  constructor({ load, keyOf, changed }) {
    this.#load = load;
    this.#keyOf = keyOf;
    this.#changed = changed;
  }

  /** Ask anew, for another place of the list. */
  async reload(asked) {
    const generation = ++this.#generation;
    this.#asked = { before: null, after: null };
    const found = await this.#load(asked);
    if (generation !== this.#generation) return;
    this.items = found.items;
    this.isFirst = found.isFirst;
    this.isLast = found.isLast;
    this.isLoaded = true;
    this.#changed();
  }

  /**
   * Ask for more.
   *
   * @param {"before"|"after"} side
   */
  more(side) {
    if (this.#asked[side] === null) {
      const asked = this.#more(side).finally(() => {
        if (this.#asked[side] === asked) this.#asked[side] = null;
      });
      this.#asked[side] = asked;
    }
    return this.#asked[side];
  }

  /** Take what has just come behind them all; what is here already is left out. */
  append(items) {
    if (!this.isLast || !this.isLoaded) return;
    const last = this.items.length ? this.#keyOf(this.items.at(-1)) : -Infinity;
    const fresh = items.filter((item) => this.#keyOf(item) > last);
    if (!fresh.length) return;
    this.items = [...this.items, ...fresh];
    this.#trim("after");
    this.#changed();
  }

  /** More has come behind them, which is to be asked for. */
  hasGrown() {
    this.isLast = false;
  }

  /** The place of the last item whose key is not greater; -1 if there is none. */
  placeOf(key) {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#keyOf(this.items[middle]) <= key) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  async #more(side) {
    if (side === "before" ? this.isFirst : this.isLast) return;
    const generation = this.#generation;
    const end = this.items.at(side === "before" ? 0 : -1);
    // Where nothing is yet, all there is comes after it.
    const found = await this.#load(end === undefined ? { after: 0 } : { [side]: this.#keyOf(end) });
    if (generation !== this.#generation) return;
    if (side === "before") {
      this.items = [...found.items, ...this.items];
      this.isFirst = found.isFirst;
    } else {
      const last = this.items.length ? this.#keyOf(this.items.at(-1)) : -Infinity;
      this.items = [...this.items, ...found.items.filter((item) => this.#keyOf(item) > last)];
      this.isLast = found.isLast;
    }
    this.#trim(side);
    this.#changed();
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
