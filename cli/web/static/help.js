// The dialog with all keys.

import { byId, element } from "./elements.js";
import { letterKeys } from "./keys.js";

/** @param {import("./keys.js").Key[]} keys */
export function showHelp(keys, isFile) {
  const rows = keys
    .filter(({ does }) => does)
    .map(({ shown, does }) =>
      element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, shown)), element("td", {}, does)),
    );
  const filter = isFile
    ? "In this file the filter searches for words: a line must contain all of them."
    : 'The filter line accepts display filters, such as actor == "alice" && kind == "rolled".';
  const turn = ({ target }) => letterKeys.turn(target.checked);
  const choice = element("input", { type: "checkbox", checked: letterKeys.areOn, onchange: turn });
  byId("help-body").replaceChildren(
    element("label", { class: "help-choice" }, choice, " Letters, digits and signs are keys"),
    element("table", {}, element("tbody", {}, ...rows)),
    element("p", {}, filter),
  );
  byId("help").showModal();
}
