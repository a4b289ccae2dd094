// The status, in the words of `watch`: live or paused, the filter, and the last action.

import { byId, linkButton, printable, write } from "./elements.js";
import { formatSpeed } from "./playback.js";

/** @param {import("./part.js").Context} context */
export function initStatusLine({ view, model, announcer, navigation }) {
  view.listen((now, before) => {
    const follows = now.at === null && now.live;
    const isAtEnd = model.timeline !== null && model.seq >= model.timeline.last;
    const how = follows
      ? "live"
      : now.playing
        ? `playing ${formatSpeed(now.speed)}`
        : isAtEnd
          ? "end"
          : "paused";
    write(byId("how"), how);
    write(byId("speed"), formatSpeed(now.speed));
    byId("speed").setAttribute("aria-pressed", String(now.speed === 0));
    write(byId("trouble"), now.trouble);
    document.documentElement.classList.toggle("is-cut", now.trouble !== "");
    const open = now.trouble ? null : navigation.openerOf(now.notice);
    if (open === null) write(byId("notice"), [now.trouble, now.notice].filter(Boolean).join(" · "));
    else if (byId("notice").querySelector("button")?.textContent !== printable(now.notice))
      byId("notice").replaceChildren(linkButton(now.notice, open));
    byId("notice").classList.toggle("is-trouble", now.trouble !== "");
    byId("notice").classList.toggle("is-excerpt", now.trouble.includes("\n"));
    if (now.trouble !== before.trouble) announcer.say(now.trouble || "connected again");
    else if (now.notice !== before.notice && now.notice && !now.playing) announcer.tell(now.notice);
    const play = byId("play");
    const isRunning = now.playing || follows;
    play.classList.toggle("is-running", isRunning);
    play.setAttribute("aria-label", isRunning ? "Pause" : "Play");
    byId("live").hidden = !now.live;
    byId("live").setAttribute("aria-pressed", String(follows));
    const shown = byId("filter-shown");
    shown.hidden = now.filter === "";
    write(shown, `filter: ${now.filter}`);
    write(byId("matches"), now.matches && `matches ${now.matches}`);
    if (now.matches !== before.matches && now.matches && !now.live) announcer.say(`the filter matches ${now.matches}`);
  });
}
