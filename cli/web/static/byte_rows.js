// Rows of a message's bytes, in hexadecimal and as text, with the piece of each byte and diagnostics.

import { element } from "./elements.js";

const IN_A_ROW = 8;
/** Characters that change the direction, cover their neighbours, or are invisible. */
const HIDDEN = /[\p{M}\p{C}\p{Zl}\p{Zp}\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}]/u;
const TWO_CELLS =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\p{Extended_Pictographic}]/u;

/**
 * Return the rows. The bytes of a piece are in elements whose `data-piece` is its number.
 *
 * @param {Uint8Array} bytes
 * @param {number[]} pieceOf for each byte the number of the innermost piece
 * @param {(string|null)[]} isInvalid for each byte, the severity of a diagnostic that covers it
 * @param {number} upTo number of bytes to show
 * @returns {HTMLElement[]}
 */
export function byteRows(bytes, pieceOf, isInvalid, upTo) {
  const letters = lettersOf(bytes);
  const rows = [];
  for (let start = 0; start < upTo; start += IN_A_ROW) {
    const hex = element("span", { class: "dump-hex" });
    const text = element("span", { class: "dump-text" });
    const end = Math.min(start + IN_A_ROW, upTo);
    for (let from = start, to; from < end; from = to) {
      to = from + 1;
      while (to < end && pieceOf[to] === pieceOf[from] && isInvalid[to] === isInvalid[from]) to += 1;
      const about = { "data-piece": pieceOf[from], class: isInvalid[from] && `is-invalid is-${isInvalid[from]}` };
      hex.append(
        element("span", about, [...bytes.slice(from, to)].map(hexOf).join(" ")),
        to < end ? " " : "",
      );
      text.append(element("span", about, letters.slice(from, to).join("")));
    }
    rows.push(
      element(
        "div",
        { class: "dump-row" },
        element("span", { class: "dump-offset" }, String(start)),
        hex,
        text,
      ),
    );
  }
  return rows;
}

function hexOf(byte) {
  return byte.toString(16).padStart(2, "0");
}

/** Return the text of each byte: a character at its first byte, dots elsewhere. */
function lettersOf(bytes) {
  const letters = new Array(bytes.length).fill(".");
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  for (let at = 0, size; at < bytes.length; at += size) {
    const first = bytes[at];
    size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    let letter;
    try {
      letter = decoder.decode(bytes.subarray(at, at + size));
    } catch {
      size = 1;
      continue;
    }
    if (HIDDEN.test(letter) || [...letter].length !== 1) continue;
    letters[at] = letter;
    // A wide character takes the cell of its second byte, too.
    if (TWO_CELLS.test(letter) && size > 1) letters[at + 1] = "";
  }
  return letters;
}
