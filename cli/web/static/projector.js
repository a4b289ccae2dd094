// The mode for a projector: nothing but the table and the latest sentence, on the whole screen if it may be.

import { differs } from "./where.js";

/** @param {import("./where.js").Where} where */
export function startProjector(where) {
  const show = (isOn) => document.documentElement.classList.toggle("is-projector", isOn);
  where.listen((now, before) => {
    if (!differs(now, before, "projector")) return;
    show(now.projector);
    // It is refused where nobody has pressed anything, as after a link: then the window will do.
    if (now.projector && navigator.userActivation?.isActive) fillScreen();
    else if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  });
  document.addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement) where.go({ projector: false });
  });
  show(where.now.projector);
}

function fillScreen() {
  document.documentElement.requestFullscreen?.().catch(() => {});
}
