// The dialog with all keys.

import { byId, element } from "./elements.js";

/** @param {import("./keys.js").Key[]} keys */
export function showHelp(keys, isFile) {
  const rows = keys
    .filter(({ does }) => does)
    .map(({ shown, does }) =>
      element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, shown)), element("td", {}, does)),
    );
  const filter = isFile
    ? "In this file the filter line looks for words: all of them are to be found in a sentence, a name or a value."
    : 'The filter line takes what display filters are written in, as in actor == "alice" && kind == "rolled".';
  byId("help-body").replaceChildren(
    element("table", {}, element("tbody", {}, ...rows)),
    element("p", {}, filter),
  );
  byId("help").showModal();
}
