// Drawings of tables: fragments placed on a sheet, wide or tall; and walls of tiles with drawings.

import { printable, svgElement } from "./elements.js";

/** Shows pictures in an SVG element; only the differences to the previous picture are changed. */
export class Drawing {
  #svg;
  #fragments;
  #uses = [];
  #written = [];

  /**
   * @param {SVGElement} svg
   * @param {import("./fragments.js").Fragments} fragments
   */
  constructor(svg, fragments) {
    this.#svg = svg;
    this.#fragments = fragments;
  }

  /**
   * @param {object} picture
   * @param {"wide"|"tall"} shape
   */
  show(picture, shape) {
    const { width, height, pieces } = picture[shape];
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#svg.setAttribute("aria-label", printable([picture.title, picture.latest].filter(Boolean).join(". ")));
    while (this.#uses.length > pieces.length) this.#uses.pop().remove();
    while (this.#uses.length < pieces.length) {
      const use = svgElement("use");
      this.#svg.append(use);
      this.#uses.push(use);
    }
    pieces.forEach(([name, x, y], place) => {
      const written = `${name} ${x} ${y}`;
      if (this.#written[place] === written) return;
      const use = this.#uses[place];
      use.setAttribute("href", this.#fragments.reference(name));
      use.setAttribute("x", x);
      use.setAttribute("y", y);
      this.#written[place] = written;
    });
    this.#written.length = pieces.length;
  }
}

/**
 * Return the shape that fills a space better.
 *
 * @param {number} width
 * @param {number} height
 * @returns {"wide"|"tall"}
 */
export function shapeFor(width, height) {
  return height > width ? "tall" : "wide";
}

/** Width of a tile in pixels below which its text cannot be read. */
const NARROWEST = 270;
/** Width of a board in proportion to its height, with the text of its tile. */
const PROPORTION = 1.45;

/** Arranges the children of a list in columns. */
export class Wall {
  #list;
  #changed;
  /** The shape of drawings that fills the tiles. */
  shape = "wide";

  /**
   * @param {HTMLElement} list
   * @param {() => void} changed is called after the shape has changed
   */
  constructor(list, changed) {
    this.#list = list;
    this.#changed = changed;
    addEventListener("resize", () => this.fit());
  }

  /** Choose the number of columns with the largest boards. */
  fit() {
    const { clientWidth: width, children } = this.#list;
    const { length: count } = children;
    if (!count || !width) return;
    // A wall on a page of its own grows with its tiles, so that its height says nothing.
    const isPage = this.#list.closest(".home") !== null;
    const height = isPage ? innerHeight - this.#list.offsetTop : this.#list.clientHeight;
    let best = { columns: 1, size: 0 };
    for (let columns = 1; columns <= Math.min(count, Math.max(Math.floor(width / NARROWEST), 1)); columns += 1) {
      const size = Math.min(width / columns, (height / Math.ceil(count / columns)) * PROPORTION);
      if (size > best.size) best = { columns, size };
    }
    this.#list.style.setProperty("--columns", best.columns);
    const board = this.#list.querySelector(".tile-board");
    const shape = board === null ? "wide" : shapeFor(board.clientWidth, board.clientHeight * 1.15);
    if (shape === this.shape) return;
    this.shape = shape;
    this.#changed();
  }
}
