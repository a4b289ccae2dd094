// Light or dark colours: the system's, unless the user chooses; the choice is stored if the browser permits.

import { keep, recall } from "./stored_choice.js";

const KEPT_AS = "kiebitz-theme";
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** @param {HTMLElement} button toggles light and dark */
export function initTheme(button) {
  const kept = recall(KEPT_AS);
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  const name = () => {
    const isDark = (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
    button.setAttribute("aria-label", isDark ? "Light colours" : "Dark colours");
    button.title = button.getAttribute("aria-label");
    return isDark;
  };
  button.addEventListener("click", () => {
    const wanted = name() ? "light" : "dark";
    // Choosing the system's own theme follows the system again.
    if ((wanted === "dark") === prefersDark.matches) delete root.dataset.theme;
    else root.dataset.theme = wanted;
    keep(KEPT_AS, root.dataset.theme);
    name();
  });
  prefersDark.addEventListener("change", name);
  name();
}
