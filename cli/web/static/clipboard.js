// Copying a reference and its link.

import { linkTo } from "./address.js";
import { byId } from "./elements.js";

/**
 * Copy `#31` and the address of the view; if the browser refuses, show it for manual copying.
 *
 * @param {import("./view_state.js").ViewState} view
 * @param {number|null} reference
 * @param {Partial<import("./view_state.js").State>} change what the address changes in the state
 */
export async function copyReference(view, reference, change) {
  if (reference === null) {
    view.update({ notice: "nothing to copy yet" });
    return;
  }
  const text = `#${reference} ${linkTo({ ...view.now, several: false, projector: false, ...change })}`;
  try {
    await navigator.clipboard.writeText(text);
    view.update({ notice: `copied #${reference} and its link` });
  } catch {
    // Browsers refuse it to unencrypted pages from other machines.
    const field = byId("copy-text");
    field.value = text;
    byId("copy").showModal();
    field.select();
  }
}
