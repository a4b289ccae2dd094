// The view state with which a session opens, from an address that may be old or wrong.

import { PUBLIC } from "./view_state.js";

/** Return a view state with the number of the session that its `group` names; of several, the live one. */
export function withSession({ group = null, ...place }, sessions) {
  if (group === null) return place;
  const named = sessions.filter(({ label }) => label === group);
  const found = named.findLast(({ live }) => live) ?? named.at(-1);
  if (found !== undefined) return { ...place, session: found.number, home: false };
  return { ...place, home: true, wrong: [...(place.wrong ?? []), `there is no session ${group} here`] };
}

/** Return the table with the most events; null if there is none. */
export function busiestTable(tables) {
  return tables.reduce((most, table) => (table.last > (most?.last ?? -1) ? table : most), null);
}

/**
 * Return the view state of a session at a place, and whether its position is to be moved to the first game.
 *
 * What is wrong with the place is added to `wrong`. `player` is the only one whose view the key shows.
 */
export function openingView(place, player, session, tables, wrong) {
  const table = tables.find((one) => one.table === place.table) ?? busiestTable(tables);
  // With another table, the rest of a place means something else.
  const isTable = place.table === null || table?.table === place.table;
  if (!isTable) wrong.push(`there is no table ${place.table} in this session`);
  if (isTable && table !== null && place.at > table.last)
    wrong.push(`there is no event ${place.at} at this table: the last one is ${table.last}`);
  const isAt = isTable && place.at !== null;
  const first = session.live || table === null ? null : Math.min(table.first + 1, table.last);
  return {
    ...place,
    home: false,
    session: session.number,
    table: table?.table ?? null,
    at: isAt ? Math.min(place.at, table?.last ?? 0) : first,
    as: player ?? place.as ?? (place.projector ? PUBLIC : null),
    live: session.live,
    trouble: "",
    // A live session opens at its latest event, a recorded one where its first game begins.
    opensAtGame: !isAt && !session.live,
  };
}

/** Close the open message if the session, or the viewer, does not have it, and say so. */
export async function checkMessage(source, view, number, as) {
  if (number === null) return;
  try {
    await source.message(as, number);
  } catch (error) {
    const { message, notice } = view.now;
    if (message === number && !error.isUnreachable)
      view.update({ message: null, notice: [error.message, notice].filter(Boolean).join(" · ") });
  }
}
