// Projector mode: only the table and the latest sentence, in full screen if permitted.

import { differs } from "./view_state.js";

/** @param {import("./view_state.js").ViewState} view */
export function initProjector(view) {
  const show = (isOn) => document.documentElement.classList.toggle("is-projector", isOn);
  view.listen((now, before) => {
    if (!differs(now, before, "projector")) return;
    show(now.projector);
    // Browsers permit full screen only after a user action, so not for a link.
    if (now.projector && navigator.userActivation?.isActive) fillScreen();
    else if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  });
  document.addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement) view.update({ projector: false });
  });
  show(view.now.projector);
}

function fillScreen() {
  document.documentElement.requestFullscreen?.().catch(() => {});
}
