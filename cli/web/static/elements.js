// Making elements: text that came from the network is only ever put into a page as text.

const SVG = "http://www.w3.org/2000/svg";
/** Controls, marks that turn a line round, and more marks on one letter than any language has. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?<=\p{M}{8})\p{M}/gu;
/** Attributes that are read like a text. */
const READ = new Set(["title", "aria-label"]);

/**
 * A new element of HTML.
 *
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes] a function is listened with (`onclick`); false and null are left out
 * @param {...(Node|string|null)} children a string becomes a text
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

/**
 * A new element of SVG; everything else is as with `element`.
 *
 * @returns {SVGElement}
 */
export function svgElement(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * The element of the page with this id, which is there.
 *
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  return document.getElementById(id);
}

/** Write a text into an element, unless it says so already: what does not change is not laid out anew. */
export function write(target, text) {
  const shown = printable(text);
  if (target.textContent !== shown) target.textContent = shown;
}

const NAMED = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A text in which all that is not seen is escaped (`\\x00`): no name can hide, or pass for the words around it. */
export function printable(text) {
  return text.replace(UNPRINTABLE, (letter) => {
    if (Object.hasOwn(NAMED, letter)) return NAMED[letter];
    const code = letter.codePointAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : `\\u{${code}}`;
  });
}

function dressed(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      made.setAttribute(name, value === true ? "" : READ.has(name) ? printable(value) : value);
  }
  for (const child of children) {
    if (child !== null) made.append(typeof child === "string" ? printable(child) : child);
  }
  return made;
}
