// A drawing of a table: fragments placed on a sheet, wide or tall.

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
