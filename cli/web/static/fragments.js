// The fragments of drawings: stored once by name, and shown wherever a picture uses them.

import { shapesOf } from "./markup.js";

/** Number of fragments above which those not used by the last pictures are dropped. */
const MOST = 5000;
const LAST_PICTURES = 200;

/** Stores fragments in a `defs` element of the page. */
export class Fragments {
  #defs;
  #kept = new Map();
  #pictures = 0;

  /** @param {SVGElement} defs */
  constructor(defs) {
    this.#defs = defs;
  }

  /** Return the reference to a fragment. */
  reference(name) {
    return `#fragment-${name}`;
  }

  /**
   * Return the missing fragments of a picture; the others are marked as used.
   *
   * @param {object} picture
   * @returns {string[]}
   */
  lackedBy(picture) {
    this.#pictures += 1;
    const names = new Set([...picture.wide.pieces, ...picture.tall.pieces].map(([name]) => name));
    return [...names].filter((name) => {
      const kept = this.#kept.get(name);
      if (kept) kept.used = this.#pictures;
      return !kept;
    });
  }

  /** @param {Record<string, string>} fragments markup, by name */
  take(fragments) {
    for (const [name, markup] of Object.entries(fragments)) {
      if (this.#kept.has(name)) continue;
      const shapes = shapesOf(markup);
      shapes.setAttribute("id", this.reference(name).slice(1));
      this.#defs.append(shapes);
      this.#kept.set(name, { shapes, used: this.#pictures });
    }
    if (this.#kept.size > MOST) this.#drop();
  }

  #drop() {
    for (const [name, { shapes, used }] of this.#kept) {
      if (used >= this.#pictures - LAST_PICTURES) continue;
      shapes.remove();
      this.#kept.delete(name);
    }
  }
}
