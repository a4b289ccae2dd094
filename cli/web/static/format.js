// Formatting of times and values, as in the terminal.

/** Format seconds since the session began, for lists. */
export function formatSeconds(seconds) {
  return seconds.toFixed(3);
}

/** Format seconds as a clock: minutes and seconds, and hours if there are any. */
export function formatClock(seconds) {
  const whole = Math.floor(Math.max(seconds, 0));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** Format a count: `1 byte`, `2,000 bytes`. */
export function formatCount(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Format a value of a message or a state: unambiguous text as it is, all else as JSON. */
export function formatValue(value) {
  if (typeof value === "string") return value && !/[\s"]/.test(value) ? value : JSON.stringify(value);
  if (Array.isArray(value) && !value.some((part) => typeof part === "object" && part !== null))
    return value.map(formatValue).join(",");
  return JSON.stringify(value);
}

/** Cut a text with an ellipsis. */
export function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** Return a client's player name, or else its address, on loopback only the port. */
export function clientName({ player, client }) {
  return player ?? client.replace(/^(127\.0\.0\.1|\[::1\])(?=:)/, "");
}

/** Return the sign of a severity, so that it is not shown by colour alone. */
export function severitySign(severity) {
  return { error: "!", warning: "?" }[severity] ?? "";
}
