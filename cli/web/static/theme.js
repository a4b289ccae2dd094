// Choices that last longer than the page, if the browser permits; and one of them, light or dark colours.

/** Return a stored choice; null if there is none. */
export function recall(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Store a choice; undefined removes it. */
export function keep(name, value) {
  try {
    if (value === undefined) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // The choice lasts until the page is closed.
  }
}

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
