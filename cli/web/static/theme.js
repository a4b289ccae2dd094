// Light or dark colours: the system's, unless the user chooses; the choice is stored if the browser permits.

const KEPT_AS = "kiebitz-theme";
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** @param {HTMLElement} button toggles light and dark */
export function initTheme(button) {
  const kept = recall();
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
    keep(root.dataset.theme);
    name();
  });
  prefersDark.addEventListener("change", name);
  name();
}

function recall() {
  try {
    return localStorage.getItem(KEPT_AS);
  } catch {
    return null;
  }
}

function keep(theme) {
  try {
    if (theme === undefined) localStorage.removeItem(KEPT_AS);
    else localStorage.setItem(KEPT_AS, theme);
  } catch {
    // The choice lasts until the page is closed.
  }
}
