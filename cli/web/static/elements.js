// Creation of elements. Text from the network enters the page only as text nodes.

import { severitySign } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
/** Control characters, direction marks, and more combining marks on one letter than any language has. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?<=\p{M}{8})\p{M}/gu;
/** Words written from right to left, with the blanks between them. */
const RIGHT_TO_LEFT = /([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?:[ '-]+[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*)/;
/** Attributes shown or read to the user. */
const READ = new Set(["title", "aria-label"]);

/**
 * Create an HTML element.
 *
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes] functions become listeners (`onclick`); false and null are left out
 * @param {...(Node|string|null)} children strings become text nodes
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Return the mark of a row, if it has one, on a line of its own. */
export function markSpan(mark) {
  return mark && element("b", { class: "row-mark" }, mark);
}

/** Return the sign of a severity with its name; null for none and a note. */
export function severitySpan(severity) {
  const sign = severitySign(severity);
  return sign && element("span", { class: `sign is-${severity}`, role: "img", "aria-label": severity }, sign);
}

/** Create a button in the form of a link. */
export function linkButton(words, onclick) {
  return element("button", { type: "button", class: "link", onclick }, words);
}

/**
 * Create an SVG element; parameters as for `element`.
 *
 * @returns {SVGElement}
 */
export function svgElement(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Return the element with an id, which must exist.
 *
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  return document.getElementById(id);
}

/** Set the text of an element. An unchanged text causes no new layout. */
export function write(target, text) {
  const shown = printable(text);
  if (target.textContent !== shown) target.replaceChildren(...isolated(shown));
}

/**
 * Return a text as nodes, with words written from right to left on their own: otherwise, numbers and punctuation beside
 * a name would appear at its other side.
 */
function isolated(text) {
  return text.split(RIGHT_TO_LEFT).map((part, place) => {
    if (place % 2 === 0) return document.createTextNode(part);
    const word = document.createElement("bdi");
    word.textContent = part;
    return word;
  });
}

const NAMED = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Escape invisible characters (`\\x00`), so that no name can hide, or imitate the text around it. */
export function printable(text) {
  return text.replace(UNPRINTABLE, (letter) => {
    if (Object.hasOwn(NAMED, letter)) return NAMED[letter];
    const code = letter.codePointAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u{${code}}`;
  });
}

function build(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      made.setAttribute(name, value === true ? "" : READ.has(name) ? printable(value) : value);
  }
  // Neither a drawing nor a choice can contain other elements.
  const isText = made.namespaceURI === SVG || made.localName === "option";
  for (const child of children) {
    if (child === null) continue;
    if (typeof child !== "string") made.append(child);
    else made.append(...(isText ? [printable(child)] : isolated(printable(child))));
  }
  return made;
}
