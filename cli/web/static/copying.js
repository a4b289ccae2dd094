// A reference and its link, for the clipboard.

import { linkOf } from "./address.js";
import { byId } from "./elements.js";

/**
 * Copy `#31` and the address of the place; where the browser refuses, show it to be copied by hand.
 *
 * @param {import("./where.js").Where} where
 * @param {number|null} reference
 * @param {Partial<import("./where.js").Place>} change what the address says besides
 */
export async function copyReference(where, reference, change) {
  if (reference === null) {
    where.go({ notice: "there is nothing to refer to yet" });
    return;
  }
  const text = `#${reference} ${linkOf({ ...where.now, several: false, projector: false, ...change })}`;
  try {
    await navigator.clipboard.writeText(text);
    where.go({ notice: `#${reference} and its link are in the clipboard` });
  } catch {
    // Pages from another machine may not write there, unless they are encrypted.
    const field = byId("copy-text");
    field.value = text;
    byId("copy").showModal();
    field.select();
  }
}
