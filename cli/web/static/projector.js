// Projector mode: only the table and the latest sentence, in the public view, in full screen if permitted.

import { PUBLIC, differs } from "./view_state.js";

/** @param {import("./view_state.js").ViewState} view */
export function initProjector(view) {
  const show = (isOn) => document.documentElement.classList.toggle("is-projector", isOn);
  let isSwitched = false;
  view.listen((now, before) => {
    if (!differs(now, before, "projector")) return;
    show(now.projector);
    if (now.projector && now.as === null) {
      isSwitched = true;
      view.update({ as: PUBLIC });
    } else if (!now.projector && isSwitched) {
      isSwitched = false;
      if (now.as === PUBLIC) view.update({ as: null });
    }
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
