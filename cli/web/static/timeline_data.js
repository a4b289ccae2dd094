// The timeline of a table: its length, games, diagnostics and scores.

/** Maximum number of time samples while it grows; then every other one is dropped. */
const MOST_SAMPLES = 2000;

/** The timeline of a table in one player's view. */
export class TimelineData {
  /** @param {object} data the server's response */
  constructor(data) {
    this.first = data.first;
    this.last = data.last;
    this.times = data.times;
    this.games = data.games;
    this.diagnostics = data.flaws;
    this.errors = data.errors;
    this.warnings = data.warnings;
    this.scores = data.scores;
  }

  /** The number of the first event; `last` if there is none. */
  get begin() {
    return Math.min(this.first + 1, this.last);
  }

  /** The number of the first event with something to see: that of the first game, or the first event. */
  get opening() {
    return this.games[0]?.seq ?? this.begin;
  }

  /** Return the approximate time of an event, in seconds since the session began. */
  secondsAt(seq) {
    return interpolated(this.times, seq, 0, 1);
  }

  /** Return the approximate number of the last event up to a time. */
  seqAt(seconds) {
    return Math.max(this.first, Math.min(Math.floor(interpolated(this.times, seconds, 1, 0)), this.last));
  }

  /** Return the game of an event; null before the first. */
  gameAt(seq) {
    return this.games.findLast((game) => game.seq <= seq) ?? null;
  }

  /** Return the beginning of the next game or, backwards, of this or the previous one; null if there is none. */
  adjacentGame(seq, by) {
    const found =
      by > 0 ? this.games.find((game) => game.seq > seq) : this.games.findLast((game) => game.seq < seq);
    return found?.seq ?? null;
  }

  /** Add new events. */
  append(events) {
    for (const event of events) {
      if (event.seq <= this.last) continue;
      this.last = event.seq;
      this.times.push([event.seq, event.time]);
      if (
        event.game !== null &&
        event.game !== this.games.at(-1)?.game &&
        !this.games.some(({ game }) => game === event.game)
      ) {
        this.games.push({ game: event.game, label: `game ${event.game}`, seq: event.seq, result: null });
      }
    }
    if (this.times.length > MOST_SAMPLES) {
      const latest = this.times.at(-1);
      this.times = this.times.filter((_, place) => place % 2 === 0);
      if (this.times.at(-1) !== latest) this.times.push(latest);
    }
  }
}

function interpolated(samples, value, from, to) {
  if (!samples.length) return 0;
  const above = samples.findIndex((sample) => sample[from] > value);
  if (above === 0) return samples[0][to];
  if (above < 0) return samples.at(-1)[to];
  const [low, high] = [samples[above - 1], samples[above]];
  return low[to] + ((high[to] - low[to]) * (value - low[from])) / (high[from] - low[from]);
}
