// Sharing of a position: its link, its picture, and both as HTML for another page.

import { linkTo } from "./address.js";
import { byId, element, svgElement } from "./elements.js";

/** Copy `#31` and the address of the position; if the browser refuses, show it for manual copying. */
export async function copyReference(context, reference) {
  if (reference === null) {
    context.view.update({ notice: "nothing to copy yet" });
    return;
  }
  try {
    await navigator.clipboard.writeText(`#${reference} ${linkOf(context)}`);
    context.view.update({ notice: `copied #${reference} and its link` });
  } catch {
    // Browsers refuse it to unencrypted pages from other machines.
    openShare(context, reference);
  }
}

/** Open the dialog with the link, the picture and HTML. */
export function openShare(context, reference) {
  const link = linkOf(context);
  const parts = [field(context, "Link", reference === null ? link : `#${reference} ${link}`)];
  if (byId("board").childElementCount > 0) {
    const svg = pictureOf(byId("board"));
    const source = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    const packed = btoa(String.fromCodePoint(...new TextEncoder().encode(svg)));
    const alt = byId("board").getAttribute("aria-label");
    const image = element("img", { alt, src: `data:image/svg+xml;base64,${packed}` });
    parts.push(
      element("p", {}, element("a", { href: source, download: "kiebitz.svg", class: "save" }, "Save the picture (SVG)")),
      field(context, "HTML to embed: the picture, with the link", element("a", { href: link }, image).outerHTML),
    );
  }
  byId("copy-body").replaceChildren(...parts);
  byId("copy").showModal();
  byId("copy-body").querySelector("textarea").select();
}

function linkOf({ view, model }) {
  const at = model.timeline === null ? null : model.seq;
  return linkTo({ ...view.now, several: false, projector: false, at });
}

function field({ view }, label, text) {
  const area = element("textarea", { rows: 3, readonly: true }, text);
  const copy = async () => {
    area.select();
    const isDone = await navigator.clipboard.writeText(text).then(() => true, () => false);
    view.update({ notice: isDone ? "copied" : "the browser refused to copy: press Ctrl-C" });
  };
  return element("div", {}, element("label", {}, label, area), element("button", { type: "button", onclick: copy }, "Copy"));
}

/** Return a drawing of the page as an SVG document with its fragments and its light colours. */
function pictureOf(board) {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const colours = rules.filter(({ cssText }) => /^(:root \{.*--k-ink:|\.k-)/s.test(cssText));
  const copy = board.cloneNode(false);
  copy.setAttribute("font-family", "Helvetica, Arial, sans-serif");
  copy.append(svgElement("style", {}, colours.map(({ cssText }) => cssText).join(" ")));
  for (const use of board.children) {
    const place = `translate(${use.getAttribute("x")} ${use.getAttribute("y")})`;
    copy.append(svgElement("g", { transform: place }, byId(use.getAttribute("href").slice(1)).cloneNode(true)));
  }
  return new XMLSerializer().serializeToString(copy);
}
