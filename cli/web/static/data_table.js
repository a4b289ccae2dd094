// Tables whose columns sort at a click on their heads, and can be hidden.

import { element } from "./elements.js";
import { keep, recall } from "./theme.js";

/** The column by which each table is sorted, and its direction, by the table's title. */
const orders = new Map();

/**
 * Return a table; its order lasts until the page is closed, its hidden columns longer.
 *
 * @param {string} title
 * @param {string[]} columns
 * @param {(string|number|{value: string|number, shown: Node})[][]} rows
 */
export function dataTable(title, columns, rows) {
  const kept = `kiebitz-hidden-${title}`;
  const hidden = new Set((recall(kept) ?? "").split("\n"));
  const table = element("table", { class: "data" });
  const draw = () => {
    const [by, way] = orders.get(title) ?? [-1, 1];
    const sorted = by < 0 ? rows : rows.toSorted((one, other) => way * compare(one[by], other[by]));
    const shown = [...columns.keys()].filter((place) => !place || !hidden.has(columns[place]));
    const heads = shown.map((place) => {
      const turn = () => {
        orders.set(title, [place, place === by ? -way : 1]);
        draw();
        table.querySelectorAll("th button")[shown.indexOf(place)].focus();
      };
      const order = place === by ? (way > 0 ? "ascending" : "descending") : null;
      const button = element("button", { type: "button", onclick: turn }, columns[place] || "name");
      const kind = rows.some((row) => typeof row[place] === "number") ? "is-number" : null;
      return element("th", { scope: "col", class: kind, "aria-sort": order }, button);
    });
    const lines = sorted.map((row) => element("tr", {}, ...shown.map((place) => cell(row[place]))));
    table.replaceChildren(
      element("caption", {}, title),
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...lines),
    );
  };
  draw();
  if (columns.length < 4) return table;
  const choices = columns.slice(1).map((column) => {
    const turn = ({ target }) => {
      if (target.checked) hidden.delete(column);
      else hidden.add(column);
      keep(kept, [...hidden].join("\n"));
      draw();
    };
    const box = element("input", { type: "checkbox", checked: !hidden.has(column), onchange: turn });
    return element("label", {}, box, ` ${column}`);
  });
  return element("div", {}, table, element("details", { class: "columns" }, element("summary", {}, "Columns"), ...choices));
}

function cell(content) {
  return element("td", { class: typeof content === "number" ? "is-number" : null }, content?.shown ?? String(content));
}

function compare(one, other) {
  const [a, b] = [one?.value ?? one, other?.value ?? other];
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
