// What is known of the whole course of a table: its length, its games, what is wrong, the points.

/** So many samples of times are kept while it grows; then every other one is let go. */
const MOST_SAMPLES = 2000;

/** The course of one table, as one player could know it. */
export class TimelineData {
  /** @param {object} given as the server tells it */
  constructor(given) {
    this.first = given.first;
    this.last = given.last;
    this.times = given.times;
    this.games = given.games;
    this.flaws = given.flaws;
    this.scores = given.scores;
  }

  /** The number of its first event; that of none where there is none. */
  get begin() {
    return Math.min(this.first + 1, this.last);
  }

  /** When an event happened, about: seconds since the session began. */
  secondsAt(seq) {
    return interpolated(this.times, seq, 0, 1);
  }

  /** The number of the last event by a time, about. */
  seqAt(seconds) {
    return Math.max(this.first, Math.min(Math.floor(interpolated(this.times, seconds, 1, 0)), this.last));
  }

  /** The game of which an event is; null before the first. */
  gameAt(seq) {
    return this.games.findLast((game) => game.seq <= seq) ?? null;
  }

  /** Where the next game begins; or, backwards, this one or the one before. Null if there is none. */
  gameBeside(seq, by) {
    const found =
      by > 0 ? this.games.find((game) => game.seq > seq) : this.games.findLast((game) => game.seq < seq);
    return found?.seq ?? null;
  }

  /** Take what has just happened. */
  take(events) {
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
