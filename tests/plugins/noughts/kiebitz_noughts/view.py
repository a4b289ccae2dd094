"""View of noughts and crosses: board and turn."""

from __future__ import annotations

from kiebitz.dissectors.game.view import Grid, Name, Scene, Seat, Span, Token, View


def view_of(scene: Scene) -> View:
    """Return the board with its players, crosses first; without a game, who is there."""
    number, game = scene.game()
    players = tuple(scene.state.get("players", {}))
    if not number:
        return View(names=scene.names, idle="no game yet" if players else "nobody is here")
    squares, turn = game.get("squares", [None] * 9), game.get("turn")
    started = next((event for event in reversed(scene.events) if event.kind == "started"), None)
    signs = {started.data["x"]: "X", started.data["o"]: "O"} if started is not None else {}
    tokens = [None if name is None else Token(signs.get(name, name[:1]), name) for name in squares]
    return View(
        names=scene.names,
        seats=tuple(
            Seat(name=name, state="turn" if name == turn else "", marks=(Span(signs.get(name, "joined")),))
            for name in signs or players
        ),
        story=((Name(turn), " is to move") if turn is not None else ("whose turn?",),),
        grid=Grid(tuple(tuple(tokens[row : row + 3]) for row in (0, 3, 6))),
        unknown=f"not known: {', '.join(game['unknown'])}" if game.get("unknown") else "",
    )
