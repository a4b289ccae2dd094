// Playback speed: a factor, or 0 for one event a second. Long pauses are shortened, and the page says so.

/** Limit, in seconds, to which longer pauses are shortened. */
const LONGEST_GAP = 2;
const SLOWEST = 1 / 64;
const FASTEST = 1024;

/** Return the time in seconds to show an event that was followed by another after `gap`. */
export function waitOf(gap, speed) {
  return speed === 0 ? 1 : Math.min(Math.max(gap, 0), LONGEST_GAP) / speed;
}

/** Whether a pause is shortened. */
export function isShortened(gap) {
  return gap > LONGEST_GAP;
}

/** Double or halve a speed; from one event a second, that of the recording. */
export function changedSpeed(speed, isFaster) {
  speed ||= 1;
  return isFaster ? Math.min(speed * 2, FASTEST) : Math.max(speed / 2, SLOWEST);
}

/** Format a speed. */
export function formatSpeed(speed) {
  if (speed === 0) return "1/s";
  return speed < 1 ? `×1/${1 / speed}` : `×${speed}`;
}
