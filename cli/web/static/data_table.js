// Tables whose columns sort and can be hidden.

import { Columns } from "./columns.js";
import { element } from "./elements.js";

/**
 * Return a table.
 *
 * @param {string} title
 * @param {string[]} columns
 * @param {(string|number|{value: string|number, shown: Node})[][]} rows
 */
export function dataTable(title, columns, rows) {
  const names = columns.map((name) => name || "name");
  const shape = new Columns(title, names, { fixed: names[0] });
  const table = element("table", { class: "data" });
  const isNumber = (place) => (rows.some((row) => typeof row[place] === "number") ? "is-number" : null);
  shape.changed = () => {
    const by = names.indexOf(shape.order.replace(/^-/, ""));
    const way = shape.order.startsWith("-") ? -1 : 1;
    const sorted = by < 0 ? rows : rows.toSorted((one, other) => way * compare(one[by], other[by]));
    const places = shape.shown.map((name) => names.indexOf(name));
    const heads = shape.heads("th", (name) => ({ scope: "col", class: isNumber(names.indexOf(name)) }));
    const lines = sorted.map((row) => element("tr", {}, ...places.map((place) => cell(row[place]))));
    table.replaceChildren(
      element("caption", {}, title),
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...lines),
    );
  };
  shape.changed();
  return columns.length < 4 ? table : element("div", {}, table, shape.choice);
}

function cell(content) {
  return element("td", { class: typeof content === "number" ? "is-number" : null }, content?.shown ?? String(content));
}

/** Compare cells: numbers as such, all else as text with the numbers in it. */
function compare(one, other) {
  const [a, b] = [one?.value ?? one ?? "", other?.value ?? other ?? ""];
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
