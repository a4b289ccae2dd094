"""The rules of Catan: each violation is reported with its place, and nothing else is.

Each case is played on the map of `catan_island.py`, and on the same map upside down.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from catan_diagnostics import Maker, ReportedDiagnostic, fund, told
from catan_island import COSTS, EDGES, ENDS, LAND, ROADS_AT, Spot, spot
from catan_play import ANNA, ANNA_2, BERT, BERT_2, CLEO, CLEO_2, NAMES, Server
from strength import a_few, every

Case = Callable[[Maker], Server]
BROKEN: list[tuple[Case, ReportedDiagnostic]] = []
KEPT: list[Case] = []


def breaks(*told: str | None, blame: str = "server") -> Callable[[Case], Case]:
    """Return a case in which one rule is broken: code, severity, message, place in it, what was expected."""

    def add(case: Case) -> Case:
        code, severity, name, where, expected = told
        assert code is not None
        assert severity is not None
        assert name is not None
        BROKEN.append((case, ReportedDiagnostic(code, severity, name, where or "", expected, blame)))
        return case

    return add


def keeps(case: Case) -> Case:
    """Return a case in which a rule is just kept."""
    KEPT.append(case)
    return case


# What dice yield.


@breaks("wrong-yield", "error", "Ertrag", '{"Holz":3}', "2 Holz")
def too_much(make: Maker) -> Server:
    return make.game("3 3 3").end_turn(3).roll(1, (3, 3), {1: {"Holz": 3}}).rounds("3")


@breaks("wrong-yield", "error", "Ertrag", '{"Erz":2}', "2 Holz")
def another_resource(make: Maker) -> Server:
    return make.game("3 3 3").end_turn(3).roll(1, (3, 3), {1: {"Erz": 2}}).rounds("3")


@breaks("missing-yield", "warning", "Würfelwurf", "", "2 Holz")
def no_yield(make: Maker) -> Server:
    return make.game("3 3 3").end_turn(3).roll(1, (3, 3), {}).rounds("3")


@breaks("missing-yield", "warning", "Würfelwurf", "", "1 Holz")
def half_a_yield(make: Maker) -> Server:
    return make.game("3 3 3").end_turn(3).roll(1, (3, 3), {1: {"Holz": 1}}).rounds("3")


@breaks("unexplained-gain", "warning", "Ertrag", '{"Holz":2}', None)
def yield_of_somebody_who_has_nothing_there(make: Maker) -> Server:
    return make.game("3 3 3").end_turn(3).roll(1, (3, 3), {1: {"Holz": 2}, 2: {"Holz": 2}}).rounds("3")


@breaks("unexplained-gain", "warning", "Ertrag", '{"Holz":2}', None)
def yield_in_spite_of_the_robber(make: Maker) -> Server:
    return make.game("3 7").robber(2, (1, 0)).end_turn(2).roll(3, (3, 3), {1: {"Holz": 2}}).rounds("3")


@keeps
def the_robber_keeps_a_field_from_yielding(make: Maker) -> Server:
    return make.game("3 7").robber(2, (1, 0)).rounds("6 6 3")


@keeps
def a_yield_in_two_pieces(make: Maker) -> Server:
    return make.game("3 3 3").end_turn(3).roll(1, (3, 3), {1: {"Holz": 1}}).gain(1, {"Holz": 1}).rounds("3")


@keeps
def a_city_yields_twice(make: Maker) -> Server:
    server = fund(make.game(), 2, COSTS["Stadt"])
    server.build(2, "Stadt", BERT[0])
    server.rounds("5 9 9 3")
    assert server.truth.hands[2]["Wolle"] == 2
    return server


@breaks("missing-yield", "warning", "Würfelwurf", "", "1 Wolle")
def a_city_that_yields_once(make: Maker) -> Server:
    return (
        fund(make.game(), 2, COSTS["Stadt"])
        .build(2, "Stadt", BERT[0])
        .end_turn(2)
        .roll(3, (2, 3), {2: {"Wolle": 1}})
        .rounds("3")
    )


@keeps
def the_bank_has_not_enough(make: Maker) -> Server:
    # Anna receives two at a time, and there are nineteen, of which two are dealt at the beginning.
    server = make.game("6 6 6 6 6 6 6 6 6 6 6")
    assert server.truth.bank["Holz"] == 1
    return server


@breaks("no-start-yield", "warning", "Bauvorgang", "", "1 Holz")
def no_yield_of_the_second_village(make: Maker) -> Server:
    return (
        Server(*NAMES[:3], mirrored=make.mirrored)
        .start((1, *ANNA), (2, *BERT))
        .settle(2, *BERT_2)
        .settle(1, *ANNA_2, gains={})
        .rounds("3 3")
    )


@breaks("wrong-yield", "error", "Ertrag", '{"Holz":2}', "1 Holz")
def too_much_of_the_second_village(make: Maker) -> Server:
    return (
        Server(*NAMES[:3], mirrored=make.mirrored)
        .start((1, *ANNA), (2, *BERT))
        .settle(2, *BERT_2)
        .settle(1, *ANNA_2, gains={"Holz": 2})
        .rounds("3 3")
    )


# What things cost.

ROAD = spot((1, -1), (1, 0))
FURTHER = spot((1, -1), (2, -1))
VILLAGE = spot((1, -1), (2, -2), (2, -1))


@breaks("wrong-cost", "error", "Kosten", '{"Holz":1}', "1 Holz, 1 Lehm")
def a_road_that_is_too_cheap(make: Maker) -> Server:
    return make.game("8").build(1, "Straße", ROAD, {"Holz": 1}).rounds("3")


@breaks("missing-cost", "error", "Bauvorgang", "", "1 Holz, 1 Lehm")
def a_road_for_nothing(make: Maker) -> Server:
    return make.game("8").build(1, "Straße", ROAD, {}).rounds("3")


@breaks("wrong-cost", "error", "Kosten", '{"Getreide":2,"Erz":2}', "2 Getreide, 3 Erz")
def a_city_that_is_too_cheap(make: Maker) -> Server:
    return (
        fund(make.game(costs="after"), 2, COSTS["Stadt"])
        .build(2, "Stadt", BERT[0], {"Getreide": 2, "Erz": 2})
        .rounds("3")
    )


@breaks("wrong-cost", "error", "Kosten", '{"Wolle":1,"Getreide":1}', "1 Wolle, 1 Getreide, 1 Erz")
def a_card_that_is_too_cheap(make: Maker) -> Server:
    return make.game("3 5").buy(2, "Ritter", {"Wolle": 1, "Getreide": 1}).rounds("3")


@breaks("unexplained-cost", "warning", "Kosten", '{"Holz":1}', None)
def a_cost_of_nothing(make: Maker) -> Server:
    return make.game("6").pay(1, {"Holz": 1}).rounds("3")


@keeps
def roads_of_a_card_are_free(make: Maker) -> Server:
    return (
        fund(make.game(), 1, COSTS["Karte"])
        .buy(1, "Straßenbau")
        .rounds("3 3 3")
        .roads(1, ROAD, FURTHER)
        .rounds("3")
    )


@keeps
def an_invention_of_one_resource(make: Maker) -> Server:
    game = fund(make.game(), 1, COSTS["Karte"]).buy(1, "Erfindung").rounds("3 3 3")
    return game.invention(1, {"Lehm": 1}).rounds("3")


@breaks("missing-cost", "error", "Bauvorgang", "", "1 Holz, 1 Lehm")
def a_third_road_for_nothing(make: Maker) -> Server:
    return (
        fund(make.game(), 1, COSTS["Karte"])
        .buy(1, "Straßenbau")
        .rounds("3 3 3")
        .roads(1, ROAD, FURTHER)
        .build(1, "Straße", spot((1, 0), (2, 0)), {})
        .rounds("3")
    )


@breaks("below-zero", "warning", "Kosten", '{"Holz":1,"Lehm":1}', None)
def more_than_one_has(make: Maker) -> Server:
    return make.game("3").build(1, "Straße", ROAD).rounds("3")


@keeps
def ones_last_resources(make: Maker) -> Server:
    server = make.game("8")
    server.build(1, "Straße", ROAD)
    server.rounds("3")
    assert server.truth.hands[1]["Holz"] == 0
    return server


# Places.


def village(make: Maker, *roads: Spot) -> Server:
    """Anna has what a village costs, and roads to these places."""
    counts = {
        kind: count + len(roads) * COSTS["Straße"].get(kind, 0) for kind, count in COSTS["Dorf"].items()
    }
    server = fund(make.game(), 1, counts)
    for road in roads:
        server.build(1, "Straße", road)
    return server


@keeps
def a_village_where_one_may_stand(make: Maker) -> Server:
    return village(make, ROAD, FURTHER).build(1, "Dorf", VILLAGE)


BAD_VILLAGES = {
    "beside_another_one": spot((0, 0), (0, 1), (1, 0)),
    "beside_one_of_ones_own": spot((1, -1), (1, 0), (2, -1)),
    "where_no_road_leads": spot((0, -2), (0, -1), (1, -2)),
    "where_one_stands": BERT[0],
    "in_the_sea": spot((2, -1), (2, 0), (3, -1)),
    "where_no_corner_is": spot((0, 0), (1, 0), (2, 0)),
}


@pytest.mark.full(but=3)
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("at", BAD_VILLAGES.values(), ids=BAD_VILLAGES)
def test_forbidden_places_of_a_village(at: Spot, mirrored: bool) -> None:
    server = village(Maker(mirrored))
    server.built(1, "Dorf", at)
    server.pay(1, COSTS["Dorf"])
    (violation,) = told(server)
    assert violation[:3] == ("bad-place", "error", "Bauvorgang")
    assert violation.where.startswith('[{"x":')
    assert violation.where.count("x") == 3


BAD_ROADS = {
    "that_joins_nothing": spot((-1, -1), (0, -1)),
    "where_one_is": BERT[1],
    "in_the_sea": spot((2, -1), (2, 0)),
    "between_fields_that_do_not_touch": spot((0, 0), (2, 0)),
    "between_a_field_and_itself": ((0, 0), (0, 0)),
}


@pytest.mark.full(but=2)
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("at", BAD_ROADS.values(), ids=BAD_ROADS)
def test_a_road_must_not_lie(at: Spot, mirrored: bool) -> None:
    server = Maker(mirrored).game("8")
    server.build(1, "Straße", at)
    server.longest(None)
    server.rounds("3")
    (violation,) = told(server)
    assert violation[:3] == ("bad-place", "error", "Bauvorgang")
    assert violation.where.count("x") == 2


@breaks(
    "bad-place",
    "error",
    "Bauvorgang",
    '[{"x":0,"y":0},{"x":1,"y":-1},{"x":1,"y":0}]',
    "an allowed place",
)
def a_city_on_anothers_village(make: Maker) -> Server:
    return fund(make.game(), 2, COSTS["Stadt"]).build(2, "Stadt", ANNA[0])


@breaks(
    "bad-place",
    "error",
    "Bauvorgang",
    '[{"x":-1,"y":0},{"x":0,"y":-1},{"x":0,"y":0}]',
    "an allowed place",
)
def a_city_on_anothers_city(make: Maker) -> Server:
    return fund(make.game(), 2, COSTS["Stadt"]).build(2, "Stadt", BERT[0]).built(1, "Stadt", BERT[0])


@breaks(
    "bad-place",
    "error",
    "Bauvorgang",
    '[{"x":0,"y":0},{"x":0,"y":1},{"x":1,"y":0}]',
    "an allowed place",
)
def a_first_village_beside_another(make: Maker) -> Server:
    return (
        Server(*NAMES[:2], mirrored=make.mirrored)
        .start((1, *ANNA))
        .settle(2, spot((0, 0), (0, 1), (1, 0)), spot((0, 0), (0, 1)))
    )


@breaks("road-through", "warning", "Bauvorgang", '[{"x":0,"y":1},{"x":1,"y":0}]', None)
def a_road_behind_anothers_village(make: Maker) -> Server:
    there = spot((0, 0), (0, 1), (1, 0))
    server = make.built((1, "Dorf", ANNA[0]), (1, "Straße", ANNA[1]), (2, "Dorf", there))
    fund(server, 1, COSTS["Straße"])
    server.build(1, "Straße", spot((0, 1), (1, 0)))
    return server


@keeps
def a_road_up_to_anothers_village(make: Maker) -> Server:
    there = spot((0, 1), (1, 0), (1, 1))
    server = make.built((1, "Dorf", ANNA[0]), (1, "Straße", ANNA[1]), (2, "Dorf", there))
    fund(server, 1, COSTS["Straße"])
    server.build(1, "Straße", spot((0, 1), (1, 0)))
    return server


# Number of pieces.


def network(count: int) -> list[Spot]:
    roads = [ANNA[1]]
    for road in roads:
        roads += [other for end in ENDS[road] for other in ROADS_AT[end] if other not in roads]
    return [*dict.fromkeys(roads)][:count]


def roads_of_anna(make: Maker, count: int) -> Server:
    server = make.built((1, "Dorf", ANNA[0]), *((1, "Straße", road) for road in network(count)))
    return fund(server, 1, COSTS["Straße"])


@breaks("too-many-pieces", "warning", "Bauvorgang", '"Straße"', "at most 15")
def a_sixteenth_road(make: Maker) -> Server:
    server = roads_of_anna(make, 15)
    server.build(1, "Straße", network(16)[-1])
    # The length of such a road is ambiguous.
    server.longest(2)
    server.rounds("3")
    return server


@keeps
def a_fifteenth_road(make: Maker) -> Server:
    return roads_of_anna(make, 14).build(1, "Straße", network(15)[-1])


CORNERS_APART = [
    ANNA[0],
    BERT[0],
    CLEO[0],
    ANNA_2[0],
    BERT_2[0],
    spot((1, -1), (2, -2), (2, -1)),
]


def towns_of_anna(make: Maker, typ: str, count: int, next_typ: str) -> Server:
    towns = [(1, typ, at) for at in CORNERS_APART[:count]]
    last = CORNERS_APART[count]
    more = [(1, "Straße", ROADS_AT[last][0])] if next_typ == "Dorf" else [(1, "Dorf", last)]
    return fund(make.built(*towns, *more), 1, COSTS[next_typ]).build(1, next_typ, last)


@breaks("too-many-pieces", "warning", "Bauvorgang", '"Dorf"', "at most 5")
def a_sixth_village(make: Maker) -> Server:
    return towns_of_anna(make, "Dorf", 5, "Dorf")


@keeps
def a_fifth_village(make: Maker) -> Server:
    return towns_of_anna(make, "Dorf", 4, "Dorf")


@breaks("too-many-pieces", "warning", "Bauvorgang", '"Stadt"', "at most 4")
def a_fifth_city(make: Maker) -> Server:
    return towns_of_anna(make, "Stadt", 4, "Stadt")


@keeps
def a_fourth_city(make: Maker) -> Server:
    return towns_of_anna(make, "Stadt", 3, "Stadt")


# Development cards.


def knights(make: Maker, count: int) -> Server:
    server = make.game()
    for _ in range(count):
        fund(server, 1, COSTS["Karte"])
        server.buy(1, "Ritter")
    server.rounds("3 3 3")
    return server


@breaks("card-not-allowed", "warning", "Ritter ausspielen", "", "one in a turn")
def a_second_card_in_a_turn(make: Maker) -> Server:
    return knights(make, 2).knight(1, (1, 0)).knight(1, (0, 0))


@keeps
def a_card_in_each_turn(make: Maker) -> Server:
    return knights(make, 2).knight(1, (1, 0)).rounds("3 3 3").knight(1, (0, 0))


@breaks("card-not-allowed", "warning", "Ritter ausspielen", "", "a card of an earlier turn")
def a_card_that_was_just_bought(make: Maker) -> Server:
    return fund(make.game(), 1, COSTS["Karte"]).buy(1, "Ritter").knight(1, (1, 0))


@keeps
def an_older_card_of_the_kind_that_was_just_bought(make: Maker) -> Server:
    return fund(knights(make, 1), 1, COSTS["Karte"]).buy(1, "Ritter").knight(1, (1, 0))


@breaks("card-not-allowed", "warning", "Monopol", "", "one of the player's cards")
def a_card_that_one_has_not_got(make: Maker) -> Server:
    server = knights(make, 1)
    server.truth.cards[1]["Monopol"] += 1
    server.monopoly(1, "Erz")
    return server


@keeps
def victory_points_count_at_once(make: Maker) -> Server:
    return fund(make.game(), 1, COSTS["Karte"]).buy(1, "Siegpunkt").finish(1)


# Trades.

AT_HARBOURS = {
    "3:1": (ANNA_2[0], "Erz", 3),
    "3:1 from its other end": (spot((1, 0), (2, -1), (2, 0)), "Erz", 3),
    "2:1 for wood": (CLEO_2[0], "Holz", 2),
    "2:1 for wood from its other end": (spot((0, 1), (0, 2), (1, 1)), "Holz", 2),
    "2:1 on the diagonal": (spot((-2, 1), (-2, 2), (-1, 1)), "Erz", 2),
    "2:1 on the diagonal, from its other end": (spot((-2, 2), (-1, 1), (-1, 2)), "Erz", 2),
    "2:1 for something else": (CLEO_2[0], "Lehm", 4),
    "beside a harbour": (spot((0, 1), (1, 0), (1, 1)), "Erz", 4),
    "no harbour": (ANNA[0], "Erz", 4),
}


@pytest.mark.parametrize("mirrored", a_few([False, True], [False]))
@pytest.mark.parametrize(
    ("at", "kind", "rate"), every(3, [pytest.param(*row, id=name) for name, row in AT_HARBOURS.items()])
)
@pytest.mark.parametrize("too_few", [0, 1])
def test_trade_rates(at: Spot, kind: str, rate: int, too_few: int, mirrored: bool) -> None:
    others = [
        corner for corner in CORNERS_APART if not {*ROADS_AT[corner]} & {*ROADS_AT[at]} and corner != at
    ]
    server = Maker(mirrored).built((1, "Dorf", at), *((2, "Dorf", corner) for corner in others))
    fund(server, 1, {kind: rate})
    server.overseas(1, {kind: rate - too_few}, {"Wolle": 1})
    server.rounds("3")
    right = ReportedDiagnostic("trade-rate", "error", "Ertrag", '{"Wolle":1}', f"{kind} {rate}:1")
    assert told(server) == ([right] if too_few else [])


@keeps
def four_for_one_twice_at_once(make: Maker) -> Server:
    return (
        fund(make.game(), 2, {"Getreide": 8}).overseas(2, {"Getreide": 8}, {"Holz": 1, "Lehm": 1}).rounds("3")
    )


@breaks("no-trade", "error", "Handel ausgeführt", "", "Handelsangebot")
def a_trade_that_nobody_has_offered(make: Maker) -> Server:
    server = make.game("6")
    server.tell("Handel ausgeführt", {"Spieler": 1, "Mitspieler": 2})
    return server


@breaks("wrong-cost", "error", "Kosten", '{"Holz":2}', "1 Holz")
def a_trade_that_is_not_what_was_offered(make: Maker) -> Server:
    server = make.game("6", costs="after")
    server.offer(1, 1, {"Holz": 1}, {})
    server.accept(2, 1)
    server.tell("Handel ausgeführt", {"Spieler": 1, "Mitspieler": 2})
    server.pay(1, {"Holz": 2})
    server.gain(2, {"Holz": 1})
    server.rounds("3")
    return server


@keeps
def the_latest_of_two_offers_that_was_accepted(make: Maker) -> Server:
    return (
        make.game("6")
        .offer(1, 1, {"Holz": 1}, {"Erz": 1})
        .accept(2, 1)
        .offer(1, 2, {"Holz": 2}, {"Erz": 1})
        .conclude(1, 2, 1, {"Holz": 1}, {"Erz": 1})
        .rounds("3")
    )


# The longest road and the largest army.


def coast() -> list[Spot]:
    """Return the edges along the coast, each next to the one before it."""
    edges = [edge for edge in EDGES if len({*edge} & {*LAND}) == 1]
    way = edges[:1]
    while len(way) < len(edges):
        way += [edge for edge in edges if edge not in way and {*ENDS[edge]} & {*ENDS[way[-1]]}][:1]
    return way


def lengths(make: Maker, ours: int, theirs: int) -> Server:
    way = coast()
    return make.built(
        *((1, "Straße", edge) for edge in way[:ours]), *((2, "Straße", edge) for edge in way[9 : 9 + theirs])
    )


HOLDERS = [
    # Anna's road, Bert's, the claimed holder of the longest, and whether the claim may be true.
    (5, 0, 1, True),
    (4, 0, 1, False),
    (5, 6, 1, False),
    (6, 6, 1, True),
    (6, 6, 2, True),
    (5, 0, 2, False),
    (4, 4, None, True),
    (6, 6, None, True),
    (6, 5, None, False),
    (7, 8, 2, True),
]


@pytest.mark.full(but=5)
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("ours", "theirs", "holder", "may"), HOLDERS)
def test_candidates_for_the_longest_road(
    ours: int, theirs: int, holder: int | None, may: bool, mirrored: bool
) -> None:
    server = lengths(Maker(mirrored), ours, theirs)
    server.longest(holder)
    server.rounds("3")
    found = told(server)
    assert [violation[:3] for violation in found] == (
        [] if may else [("longest-road", "error", "Längste Handelsstraße")]
    )
    if not may:
        longest = ["Anna"] * (ours >= theirs) + ["Bert"] * (theirs >= ours)
        assert found[0].expected == ", ".join(longest)
        assert found[0].where == ("" if holder is None else str(holder))


def broken_road(make: Maker) -> Server:
    """Anna has the longest road, of five, and Bert builds a village on it."""
    middle = spot((0, -1), (1, -2), (1, -1))
    way = coast()
    first = next(
        place for place, edge in enumerate(way) if middle in ENDS[edge] and middle in ENDS[way[place - 1]]
    )
    server = make.built(
        *((1, "Straße", way[(first + step) % len(way)]) for step in range(-2, 3)),
        (2, "Straße", spot((0, -1), (1, -1))),
        *((3, "Dorf", corner) for corner in CORNERS_APART[:3]),
    )
    server.longest(1)
    fund(server, 2, COSTS["Dorf"])
    server.build(2, "Dorf", middle)
    return server


@keeps
def a_village_breaks_a_road(make: Maker) -> Server:
    return broken_road(make).longest(None).rounds("3")


@breaks("longest-road", "error", "Längste Handelsstraße", "1", "Anna")
def a_road_that_a_village_has_broken(make: Maker) -> Server:
    return broken_road(make).longest(1).rounds("3")


@keeps
def a_ring_is_as_long_as_its_roads(make: Maker) -> Server:
    around = [edge for edge in EDGES if (0, 0) in edge]
    return make.built(*((1, "Straße", edge) for edge in around)).longest(1).rounds("3")


@breaks("largest-army", "error", "Größte Rittermacht", "1", "at least 3")
def an_army_of_two(make: Maker) -> Server:
    return knights(make, 2).knight(1, (1, 0)).rounds("3 3 3").knight(1, (0, 0)).army(1)


@keeps
def an_army_of_three(make: Maker) -> Server:
    server = knights(make, 3)
    for place in ((1, 0), (0, 0), (1, 0)):
        server.knight(1, place)
        server.rounds("3 3 3")
    server.army(1)
    return server


# Whose turn it is.


@breaks("out-of-turn", "error", "Würfelwurf", "3", "2")
def a_roll_out_of_turn(make: Maker) -> Server:
    return make.game("3 3 3 3").end_turn(1).roll(3, (1, 2))


@breaks("out-of-turn", "error", "Bauvorgang", "1", "2")
def building_out_of_turn(make: Maker) -> Server:
    return make.game("8 3").build(1, "Straße", ROAD)


@breaks("total-mismatch", "warning", "Statusupdate", '{"Holz":3}', "1")
def a_total_that_contradicts_what_was_told(make: Maker) -> Server:
    server = make.game("3")
    server.truth.hands[1]["Holz"] = 3
    server.update()
    return server


@breaks("cards-mismatch", "warning", "Statusupdate", '{"Monopol":1}', "1 Ritter")
def a_status_with_another_card(make: Maker) -> Server:
    """The contradiction is reported where it shows, and not again when the card is played."""
    server = fund(make.game(), 1, COSTS["Karte"]).buy(1, "Ritter")
    server.truth.cards[1] = {**server.truth.cards[1], "Ritter": 0, "Monopol": 1}
    server.update()
    server.truth.cards[1] = {**server.truth.cards[1], "Ritter": 1, "Monopol": 0}
    server.update()
    return server.rounds("3 3 3").knight(1, (1, 0)).rounds("3")


# The robber.


@breaks("robber-stays", "warning", "Räuber versetzt", '{"x":0,"y":0}', "another field")
def the_robber_stays(make: Maker) -> Server:
    return make.game("7").robber(1, (0, 0))


@breaks("bad-place", "warning", "Räuber versetzt", '{"x":2,"y":0}', "another field")
def the_robber_goes_to_sea(make: Maker) -> Server:
    return make.game("7").robber(1, (2, 0))


@breaks("bad-target", "error", "Räuber versetzt", "3", "a player with a village or city there")
def somebody_is_robbed_who_has_nothing_there(make: Maker) -> Server:
    return make.game("7").robber(1, (0, -1), 3)


@keeps
def somebody_is_robbed_who_has_no_cards(make: Maker) -> Server:
    return make.game("3 3 3 7").give(1, 2, {"Holz": 1}).rounds("3 7").robber(3, (1, 0), 1).rounds("3")


@pytest.mark.parametrize("mirrored", a_few([False, True], [False]))
@pytest.mark.parametrize(("case", "right"), BROKEN, ids=[case.__name__ for case, _ in BROKEN])
def test_broken(case: Case, right: ReportedDiagnostic, mirrored: bool) -> None:
    (violation,) = told(case(Maker(mirrored)))
    if mirrored:
        assert violation._replace(where="") == right._replace(where="")
    else:
        assert violation == right


@pytest.mark.full(but=5)
@pytest.mark.parametrize("mirrored", a_few([False, True], [False]))
@pytest.mark.parametrize("case", KEPT, ids=[case.__name__ for case in KEPT])
def test_kept(case: Case, mirrored: bool) -> None:
    assert told(case(Maker(mirrored))) == []
