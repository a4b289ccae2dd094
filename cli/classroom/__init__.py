"""The sheet of `kiebitz class`."""
