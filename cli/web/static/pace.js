// How fast a recorded game is shown: as it was, or some times as fast. A long silence is shortened, and that is said.

/** A silence that is longer (seconds) is shown this long. */
const LONGEST_GAP = 2;
const SLOWEST = 1 / 64;
const FASTEST = 1024;

/** How long an event is shown whose successor came so much later, in seconds. */
export function waitOf(gap, speed) {
  return Math.min(Math.max(gap, 0), LONGEST_GAP) / speed;
}

/** Whether such a silence is longer than what is shown of it. */
export function isShortened(gap) {
  return gap > LONGEST_GAP;
}

/** Twice as fast, or half as fast. */
export function changedSpeed(speed, isFaster) {
  return isFaster ? Math.min(speed * 2, FASTEST) : Math.max(speed / 2, SLOWEST);
}

/** A speed in words. */
export function speedWords(speed) {
  return speed < 1 ? `×1/${1 / speed}` : `×${speed}`;
}
