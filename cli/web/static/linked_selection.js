// Linked selection of bytes and pieces: pointing at one marks the other; the arrow keys select pieces.

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
