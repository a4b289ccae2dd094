"""Example SQL queries for games of Catan."""

from __future__ import annotations

from kiebitz.dissectors.queries import Query

QUERIES = (
    Query(
        "catan_dice",
        "The dice, against chance",
        "How often each sum was rolled, and how often it is to be expected of as many rolls.",
        """
        WITH rolls AS (
          SELECT (data ->> '$.dice[0]') + (data ->> '$.dice[1]') AS sum
          FROM v_events WHERE protocol = 'catan' AND kind = 'rolled'
        )
        SELECT sum, count(*) AS times,
          round((6 - abs(sum - 7)) / 36.0 * (SELECT count(*) FROM rolls), 1) AS expected
        FROM rolls GROUP BY sum ORDER BY sum""",
    ),
    Query(
        "who_was_robbed",
        "Who robbed whom",
        "How often each player moved the robber, and from whom a card was taken.",
        """
        SELECT player, data ->> 'from_name' AS robbed, count(*) AS times
        FROM v_events WHERE protocol = 'catan' AND kind = 'robber'
        GROUP BY player, robbed ORDER BY times DESC, player, robbed""",
    ),
)
