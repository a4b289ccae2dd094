// Choices that last longer than the page, if the browser permits.

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
