// The bytes of a message, in hexadecimal and as text, linked with the list of its pieces.

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

/**
 * @param {HTMLElement} dump contains the bytes in elements with `data-piece`
 * @param {HTMLElement} list contains a row for each piece
 * @param {{offset: number, length: number}[]} pieces
 */
export function linkSelection(dump, list, pieces) {
  let marked = -1;
  const mark = (number, isSeen) => {
    if (number === marked) return;
    marked = number;
    for (const element of [...dump.querySelectorAll(".is-marked"), ...list.querySelectorAll(".is-marked")])
      element.classList.remove("is-marked");
    const row = list.querySelector(`[data-piece="${number}"]`);
    const piece = pieces[number];
    row?.classList.add("is-marked");
    if (piece === undefined) return;
    for (const element of dump.querySelectorAll("[data-piece]")) {
      // Its own bytes, and those of nested pieces.
      const inner = pieces[Number(element.dataset.piece)];
      if (inner && inner.offset >= piece.offset && inner.offset + inner.length <= piece.offset + piece.length)
        element.classList.add("is-marked");
    }
    if (isSeen) scrollIntoSight(dump, dump.querySelector(".is-marked"));
    else scrollIntoSight(list, row);
  };
  const choose = (number) => {
    for (const row of list.querySelectorAll("[aria-selected=true]"))
      row.setAttribute("aria-selected", "false");
    const row = list.querySelector(`[data-piece="${number}"]`);
    row?.setAttribute("aria-selected", "true");
    if (row) list.setAttribute("aria-activedescendant", row.id);
    mark(number, true);
    scrollIntoSight(list, row);
    if (row && !isInSight(row, dump)) row.scrollIntoView({ block: "center" });
  };
  const pointed = (event) => event.target.closest?.("[data-piece]")?.dataset.piece;
  for (const [place, isList] of [
    [dump, false],
    [list, true],
  ]) {
    place.addEventListener("pointerover", (event) => {
      if (pointed(event) !== undefined) mark(Number(pointed(event)), isList);
    });
    place.addEventListener("click", (event) => {
      if (pointed(event) !== undefined) choose(Number(pointed(event)));
    });
  }
  list.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(Math.max(0, Math.min(marked + by, pieces.length - 1)));
  });
  list.addEventListener("focus", () => {
    if (marked < 0) choose(0);
  });
}

/** Whether a row is visible in its pane and below the bytes, which stay above it in narrow panes. */
function isInSight(row, dump) {
  const [box, bytes, pane] = [row, dump, row.closest(".is-scrolled")].map((one) => one.getBoundingClientRect());
  const top = bytes.left < box.right && bytes.right > box.left ? Math.max(bytes.bottom, pane.top) : pane.top;
  return box.top >= top && box.bottom <= Math.min(pane.bottom, innerHeight);
}

/** Scroll an element into view within its container, without scrolling the page. */
function scrollIntoSight(scrolled, element) {
  if (!element || scrolled.scrollHeight <= scrolled.clientHeight) return;
  const top = element.getBoundingClientRect().top - scrolled.getBoundingClientRect().top;
  if (top < 0 || top > scrolled.clientHeight - 24) scrolled.scrollTop += top - scrolled.clientHeight / 3;
}
