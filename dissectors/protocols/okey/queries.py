"""Example SQL queries about games of Okey."""

from __future__ import annotations

from kiebitz.dissectors.queries import Query

QUERIES = (
    Query(
        "drawn_from_where",
        "Who draws from which stack",
        "How often each player drew, and from which stack: m is the one in the middle, e the neighbour's.",
        """
        SELECT player, data ->> 'stack' AS stack, count(*) AS times
        FROM v_events WHERE protocol = 'okey' AND kind = 'drew'
        GROUP BY player, stack ORDER BY player, times DESC""",
    ),
)
