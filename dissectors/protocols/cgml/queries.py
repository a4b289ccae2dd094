"""Example SQL queries for games over CGML."""

from __future__ import annotations

from kiebitz.dissectors.queries import Query

QUERIES = (
    Query(
        "who_earned_what",
        "Who earned how much, by contract",
        "What each player won and lost in hands of each contract, in the unit of the stakes.",
        """
        SELECT paid.key AS player, e.data ->> 'game' AS contract, count(*) AS hands, sum(paid.value) AS money
        FROM v_events AS e, json_each(e.data, '$.money') AS paid
        WHERE e.protocol = 'cgml' AND e.kind = 'result'
        GROUP BY player, contract ORDER BY money DESC, player, contract""",
    ),
)
