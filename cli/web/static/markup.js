// Conversion of a fragment's markup to elements: only a list of harmless elements and attributes is copied.

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
