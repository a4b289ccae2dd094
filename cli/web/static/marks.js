// Marks on messages and events: the dialog with a note, and with all marks of the session.

import { element, linkButton } from "./elements.js";
import { closeDialog, openDialog } from "./held_dialog.js";

/** Whether the page can change marks: only that of a server, in the full view. */
export function mayMark({ source, model, view }) {
  return source.setMark !== undefined && model.onlyPlayer === null && view.now.as === null;
}

/**
 * Open the dialog with the mark of a message or an event.
 *
 * @param {import("./part.js").Context} context
 * @param {"message"|"event"} kind
 * @param {number|null} number
 */
export function openMark(context, kind, number) {
  const { model, view } = context;
  if (number === null || !mayMark(context)) {
    view.update({ notice: number === null ? "nothing to mark yet" : "marks are set in the full view of kiebitz serve" });
    return;
  }
  const known = model.marks.get(`${kind} ${number}`);
  const input = element("input", { id: "mark-note", type: "text", maxlength: 1000, autocomplete: "off" });
  input.value = known?.note ?? "";
  const set = async (note) => {
    await model.mark(kind, number, note);
    closeDialog();
    view.update({ notice: `${kind} #${number} is ${note === null ? "no longer " : ""}marked` });
  };
  const failed = (error) => view.update({ notice: error.message });
  const others = [...model.marks.values()].map((mark) =>
    element("li", {}, linkButton(`${mark.kind} #${mark.number}`, () => go(context, mark)), ` ${mark.note}`),
  );
  openDialog(
    `Mark ${kind} #${number}`,
    [
      element("div", { class: "held-field" }, element("label", { for: input.id }, "Note, which may be empty"), input),
      known ? element("p", {}, linkButton("Remove the mark", () => set(null).catch(failed))) : "",
      element("ul", { class: "mark-list", "aria-label": "All marks" }, ...others),
    ],
    "Save",
    () => set(input.value.trim()),
  );
}

function go({ view, navigation }, { kind, number, table, seq }) {
  closeDialog();
  if (kind === "message") navigation.open(number);
  else view.update({ table, at: seq, message: null, playing: false, notice: "" });
}
