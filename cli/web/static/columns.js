// Columns of tables and lists: a click on their heads sorts, and all but one can be hidden.

import { element } from "./elements.js";
import { keep, recall } from "./theme.js";

/** The column by which each table or list is sorted, with a minus if descending, by its title. */
const orders = new Map();

/** The columns of a table or a list; their order lasts until the page is closed, the choice of hidden ones longer. */
export class Columns {
  /** Is called when the order or the choice has changed; makes new heads. */
  changed = () => {};
  #title;
  #names;
  #natural;
  #hidden;
  #buttons = new Map();
  /** The choice of columns. */
  choice;

  /**
   * @param {string} title
   * @param {string[]} names
   * @param {object} how
   * @param {string} how.fixed the column that cannot be hidden
   * @param {string} [how.natural] the column by which the rows are sorted at first
   * @param {string[]} [how.hidden] columns that are hidden at first
   */
  constructor(title, names, { fixed, natural = "", hidden = [] }) {
    const kept = `kiebitz-hidden-${title}`;
    this.#title = title;
    this.#names = names;
    this.#natural = natural;
    this.#hidden = new Set(recall(kept)?.split("\n") ?? hidden);
    const boxes = names
      .filter((name) => name !== fixed)
      .map((name) => {
        const turn = ({ target }) => {
          this.#hidden[target.checked ? "delete" : "add"](name);
          keep(kept, [...this.#hidden].join("\n"));
          this.changed();
        };
        const box = element("input", { type: "checkbox", checked: !this.#hidden.has(name), onchange: turn });
        return element("label", {}, box, ` ${name}`);
      });
    this.choice = element("details", { class: "columns" }, element("summary", {}, "Columns"), ...boxes);
  }

  /** The column to sort by, with a minus if descending; empty for the natural order. */
  get order() {
    return orders.get(this.#title) ?? "";
  }

  get shown() {
    return this.#names.filter((name) => !this.#hidden.has(name));
  }

  /** Return an element for each shown column, with a button if `isSortable(name)`; `about(name)` are its attributes. */
  heads(tag, about, isSortable = () => true) {
    this.#buttons.clear();
    const order = this.order || this.#natural;
    return this.shown.map((name) => {
      const isSorted = order === name ? "ascending" : order === `-${name}` ? "descending" : null;
      if (!isSortable(name)) return element(tag, about(name), name);
      const button = element("button", { type: "button", onclick: () => this.#turn(name, order) }, name);
      this.#buttons.set(name, button);
      return element(tag, { ...about(name), "aria-sort": isSorted }, button);
    });
  }

  /** Sort by a column, the other way round, or in the natural order again. */
  #turn(name, order) {
    const next = order === name ? `-${name}` : order === `-${name}` ? "" : name;
    orders.set(this.#title, next === this.#natural ? "" : next);
    this.changed();
    this.#buttons.get(name).focus();
  }
}
