// The line that says how it goes, in the words of `watch`: live or paused, which filter, and what was just done.

import { byId, write } from "./elements.js";
import { speedWords } from "./pace.js";

/**
 * @param {import("./where.js").Where} where
 * @param {import("./watched.js").Watched} watched
 * @param {import("./announcer.js").Announcer} announcer
 */
export function startStatusLine(where, watched, announcer) {
  where.listen((now, before) => {
    const follows = now.at === null && now.live;
    const isAtEnd = watched.timeline !== null && watched.seq >= watched.timeline.last;
    const how = follows
      ? "live"
      : now.playing
        ? `playing ${speedWords(now.speed)}`
        : isAtEnd
          ? "end"
          : "paused";
    write(byId("how"), how);
    write(byId("speed"), speedWords(now.speed));
    write(byId("notice"), [now.trouble, now.notice].filter(Boolean).join(" · "));
    byId("notice").classList.toggle("is-trouble", now.trouble !== "");
    if (now.trouble !== before.trouble) announcer.say(now.trouble || "connected again");
    else if (now.notice !== before.notice && now.notice && !now.playing) announcer.say(now.notice);
    const play = byId("play");
    const isRunning = now.playing || follows;
    play.classList.toggle("is-running", isRunning);
    play.setAttribute("aria-label", isRunning ? "Pause" : "Play");
    byId("live").hidden = !now.live;
    byId("live").setAttribute("aria-pressed", String(follows));
    const shown = byId("filter-shown");
    shown.hidden = now.filter === "";
    write(shown, `filter: ${now.filter}`);
  });
}
