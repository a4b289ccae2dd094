// The steps of a sequence diagram: messages as arrows between lifelines, with a broadcast's copies as one arrow.

/** Maximum age of a broadcast to which a copy can belong, in seconds; as in `dissectors/sequence/model.py`. */
const LATEST_COPY_S = 2;
/** Maximum number of lifelines; further clients share one. */
const MOST_LIFELINES = 24;
/** A value that is left out: an object, or any other of many characters. */
const LONG_VALUE = /(\S+?)=(\{.{25,}?\}(?= \S+?=|$)|\S{25,})/g;

/** The lifelines of the public view, which has each message once, with all players as its receiver. */
export const PUBLIC_LINES = { names: ["all players", "server"], of: { get: () => 0, has: () => true } };

/**
 * Return the lifelines of a table: its clients by connection, then the server.
 *
 * @param {object[]} streams of one server
 * @returns {{names: string[], of: Map<number, number>}} names, and the lifeline of each stream
 */
export function lifelinesOf(streams) {
  const lines = [];
  for (const stream of streams) {
    // A name proves nothing, but a player who comes back after its connection ended keeps the lifeline.
    const known = lines.find(
      ({ player, closed }) => player !== null && player === stream.player && closed !== null && closed <= stream.opened,
    );
    if (known !== undefined) {
      known.closed = stream.closed;
      known.streams.push(stream.number);
    } else if (lines.length < MOST_LIFELINES) {
      lines.push({ ...stream, streams: [stream.number], name: stream.player ?? stream.client });
    } else {
      lines.at(-1).streams.push(stream.number);
      lines.at(-1).name = "others";
    }
  }
  const of = new Map(lines.flatMap((line, place) => line.streams.map((stream) => [stream, place])));
  return { names: [...lines.map(({ name }) => name), "server"], of };
}

/**
 * Return the steps in order: arrows, each with notes on its problems, and the events.
 *
 * @param {object[]} messages
 * @param {{events: object[], diagnostics: object[], dropped: object[]}} between
 * @param {Map<number, number>} lineOf
 */
export function stepsOf(messages, { events, diagnostics, dropped }, lineOf) {
  const problems = new Map();
  for (const row of diagnostics) problems.set(row.message, [...(problems.get(row.message) ?? []), row]);
  const eventOf = new Map(events.map((event) => [event.number, event]));
  const reported = new Set(messages.map(({ event }) => event));
  // What belongs to no message has its place by time.
  const apart = [
    ...dropped.map(droppedArrow),
    ...events.filter(({ number }) => !reported.has(number)).map(eventNote),
    ...(problems.get(null) ?? []).map(problemNote),
  ].sort((one, other) => one.time - other.time);
  const steps = [];
  const broadcasts = new Map();
  for (const message of messages) {
    while (apart.length && isBefore(apart[0], message)) steps.push(apart.shift());
    const line = lineOf.get(message.stream);
    const own = problems.get(message.number) ?? [];
    const key = own.length ? null : broadcastKey(message);
    const known = key !== null ? broadcasts.get(key) : undefined;
    if (known !== undefined && message.time - known.time <= LATEST_COPY_S && !known.clients.includes(line)) {
      known.clients.push(line);
      known.numbers.push(message.number);
      known.key = `m${known.number}-${known.clients.length}`;
      known.content = commonPart(known.content, contentOf(message));
    } else {
      const arrow = arrowOf(message, line, own);
      if (key !== null) broadcasts.set(key, arrow);
      steps.push(arrow, ...own.map(problemNote));
      if (message.altered) steps.push(alterationNote(message, line));
    }
    const event = eventOf.get(message.event);
    if (eventOf.delete(message.event)) steps.push(eventNote(event));
  }
  return [...steps, ...apart];
}

/** Whether a step belongs before a message: by its time, and an event before all that follow from it. */
function isBefore({ kind, time, event }, message) {
  return time < message.time || (kind === "note" && event !== undefined && event < message.event);
}

/** What the copies of a broadcast have in common; null if a message cannot be one. */
function broadcastKey({ direction, altered, name, event, words }) {
  return direction === "c2s" || altered ? null : JSON.stringify([name, event ?? words]);
}

function arrowOf(message, line, problems) {
  const { number, time, direction, name, event } = message;
  return {
    key: `m${number}`,
    kind: "arrow",
    number,
    numbers: [number],
    time,
    direction,
    clients: [line],
    name,
    content: contentOf(message),
    event,
    severity: gravestOf(problems),
    isAltered: message.altered !== null,
    isDropped: false,
    stream: message.stream,
  };
}

function contentOf({ gloss, words }) {
  return [gloss, words.replace(LONG_VALUE, "$1=…")].filter(Boolean).join(" · ");
}

/** Return a text without the values that differ in another one. */
function commonPart(text, other) {
  if (text === other) return text;
  const [some, others] = [text.split(" "), other.split(" ")];
  if (some.length !== others.length) return "…";
  return some
    .map((word, place) => (word === others[place] ? word : word.replace(/(?<==).*|^[^=]*$/, "…")))
    .join(" ");
}

function droppedArrow(row) {
  const arrow = arrowOf({ ...row, number: null, event: null, gloss: null, altered: row.action }, null, []);
  const content = [arrow.content, `dropped by ${row.rule}`].filter(Boolean).join(" · ");
  return { ...arrow, key: `a${row.id}`, isDropped: true, content };
}

function eventNote({ number, seq, time, sentence }) {
  return { key: `e${number}`, kind: "note", seq, event: number, time, text: sentence, severity: null, number: null };
}

function problemNote({ id, time, severity, code, text, message, stream }) {
  return { key: `d${id}`, kind: "note", time, text: `${severity}[${code}]: ${text}`, severity, number: message, stream };
}

function alterationNote({ number, time, altered, stream }) {
  return { key: `x${number}`, kind: "note", time, text: `altered: ${altered}`, severity: null, number, stream };
}

function gravestOf(problems) {
  return ["error", "warning"].find((severity) => problems.some((one) => one.severity === severity)) ?? null;
}
