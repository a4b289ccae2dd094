"""Example SQL queries about games of Mäxchen."""

from __future__ import annotations

from kiebitz.dissectors.queries import Query

QUERIES = (
    Query(
        "who_bluffed_most",
        "Who bluffed most",
        "How often each player announced other dice than they had rolled last, and of how many announcements"
        " of which the roll was seen.",
        """
        SELECT player, sum(announced <> rolled) AS bluffs, count(*) AS announcements,
          round(100.0 * sum(announced <> rolled) / count(*), 1) AS percent
        FROM (
          SELECT e.player, e.data ->> 'dice' AS announced,
            (SELECT r.data ->> 'dice' FROM v_events AS r WHERE r.session_id = e.session_id AND r.id < e.id
              AND r.game IS e.game AND r.player = e.player AND r.kind = 'rolled' ORDER BY r.id DESC LIMIT 1)
            AS rolled
          FROM v_events AS e WHERE e.protocol = 'maexchen' AND e.kind = 'announced'
        )
        WHERE rolled IS NOT NULL GROUP BY player ORDER BY bluffs DESC, player""",
    ),
    Query(
        "who_lost_why",
        "Who lost, and why",
        "How often each player lost a round, by the reason that the server gave.",
        """
        SELECT loser.value AS player, e.data ->> 'reason' AS reason, count(*) AS rounds
        FROM v_events AS e, json_each(e.data, '$.names') AS loser
        WHERE e.protocol = 'maexchen' AND e.kind = 'lost'
        GROUP BY player, reason ORDER BY rounds DESC, player, reason""",
    ),
)
