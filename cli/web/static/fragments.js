// The fragments of drawings: each is kept once, under its name, and shown wherever a picture has it.

import { shapesOf } from "./markup.js";

/** So many are kept, before those are dropped that none of the last pictures had. */
const MOST = 5000;
const LAST_PICTURES = 200;

/** Keeps fragments in the `defs` of one element of the page. */
export class Fragments {
  #defs;
  #kept = new Map();
  #pictures = 0;

  /** @param {SVGElement} defs */
  constructor(defs) {
    this.#defs = defs;
  }

  /** How a drawing refers to a fragment. */
  reference(name) {
    return `#fragment-${name}`;
  }

  /**
   * Which of a picture's fragments are not here; those that are stay for some pictures more.
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
