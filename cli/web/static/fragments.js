// Pictures of tables and their fragments: made of markup with harmless elements only, stored, and shown by name.

import { Part } from "./part.js";

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

const ELEMENTS = new Set("svg g rect circle ellipse path polygon polyline line text tspan title".split(" "));
const ATTRIBUTES = new Set(
  (
    "class transform opacity fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap " +
    "stroke-linejoin stroke-dasharray stroke-dashoffset stroke-miterlimit paint-order vector-effect " +
    "x y dx dy x1 y1 x2 y2 cx cy r rx ry width height points d rotate viewBox preserveAspectRatio " +
    "font-family font-size font-weight font-style text-anchor dominant-baseline letter-spacing word-spacing " +
    "text-decoration textLength lengthAdjust"
  ).split(" "),
);
const DEEPEST = 32;
/** With trusted types, a page accepts markup only from its policy. */
const PARSED = globalThis.trustedTypes?.createPolicy("kiebitz-drawings", { createHTML: (markup) => markup });

/**
 * Return a fragment's elements; an empty group for invalid markup.
 *
 * @param {string} markup an SVG element
 * @returns {SVGElement}
 */
export function shapesOf(markup) {
  const wrapped = `<svg xmlns="http://www.w3.org/2000/svg">${markup}</svg>`;
  const root = new DOMParser().parseFromString(
    PARSED?.createHTML(wrapped) ?? wrapped,
    "image/svg+xml",
  ).documentElement;
  const group = document.createElementNS(root.namespaceURI, "g");
  if (root.localName === "svg") takeOver(root, group, 0);
  return group;
}

function takeOver(from, to, depth) {
  for (const child of from.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) {
      to.append(child.data);
      continue;
    }
    const isKnown = child.nodeType === Node.ELEMENT_NODE && child.namespaceURI === from.namespaceURI;
    if (!isKnown || !ELEMENTS.has(child.localName) || depth > DEEPEST) continue;
    const made = document.createElementNS(from.namespaceURI, child.localName);
    for (const { name, value } of child.attributes) {
      // A colour could refer to an external resource.
      if (ATTRIBUTES.has(name) && !/url\s*\(/i.test(value)) made.setAttribute(name, value);
    }
    takeOver(child, made, depth + 1);
    to.append(made);
  }
}

const MOST_PICTURES = 64;

/** Loads pictures and their fragments. */
export class Pictures extends Part {
  #cached = new Map();

  /**
   * Return the picture of a table after an event.
   *
   * @param {{table: number, as: string|null, at: number, game?: number|null}} moment
   * @returns {Promise<object>}
   */
  async at({ table, as, at, game = null }) {
    const { seat } = this.view.now;
    const key = this.#key(table, as, at, game, seat);
    let pending = this.#cached.get(key);
    if (pending === undefined) {
      pending = this.source.picture(table, as, at, game, seat);
      this.#cache(key, pending);
      pending.catch(() => this.#cached.delete(key));
    }
    const picture = await pending;
    const lacking = this.fragments.lackedBy(picture);
    if (lacking.length) this.fragments.take(await this.source.fragments(table, as, picture.seq, lacking, game, seat));
    return picture;
  }

  /** Cache a picture pushed by the server, with its fragments. */
  take(as, picture) {
    this.fragments.take(picture.fragments ?? {});
    this.#cache(this.#key(picture.table, as, picture.seq, null, null), Promise.resolve(picture));
  }

  #key(...place) {
    return JSON.stringify([this.source.session, ...place]);
  }

  #cache(key, pending) {
    this.#cached.delete(key);
    this.#cached.set(key, pending);
    if (this.#cached.size > MOST_PICTURES) this.#cached.delete(this.#cached.keys().next().value);
  }
}
