// Times and values in words, as the terminal has them.

/** Seconds since the session began, as they stand in a list. */
export function secondsWords(seconds) {
  return seconds.toFixed(3);
}

/** The same for a clock that one reads from afar: minutes and seconds, hours where there are some. */
export function clockWords(seconds) {
  const whole = Math.floor(Math.max(seconds, 0));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** `1 byte`, `2,000 bytes`. */
export function countWords(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A value of a message or of the state: a text as it is where its end is seen, else as JSON. */
export function valueWords(value) {
  if (typeof value === "string") return value && !/[\s"]/.test(value) ? value : JSON.stringify(value);
  if (Array.isArray(value) && !value.some((part) => typeof part === "object" && part !== null))
    return value.map(valueWords).join(",");
  return JSON.stringify(value);
}

/** A text with an end that says that it is one. */
export function shortenedWords(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** Who is at the other end of a stream: a name, or else the port. */
export function clientWords({ player, client }) {
  return player ?? client.replace(/^(127\.0\.0\.1|\[::1\])(?=:)/, "");
}

/** `1` for the error's mark, and so on: what is wrong is told by a sign, not by a colour alone. */
export function signOf(severity) {
  return { error: "!", warning: "?" }[severity] ?? "";
}
