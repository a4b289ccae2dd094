"""Example SQL queries about games of Schafkopf."""

from __future__ import annotations

from kiebitz.dissectors.queries import Query

QUERIES = (
    Query(
        "who_declared_what",
        "Who declared which game",
        "How often each player declared each game, and how many of those rounds ended with them among the"
        " winners, as far as that was seen.",
        """
        SELECT result ->> 'player' AS player, result ->> 'mode' AS mode, count(*) AS rounds,
          sum(EXISTS (SELECT 1 FROM json_each(result, '$.winner') WHERE value = result ->> 'player')) AS won
        FROM v_games WHERE protocol = 'schafkopf' AND result ->> 'player' IS NOT NULL
        GROUP BY player, mode ORDER BY rounds DESC, player, mode""",
    ),
)
