"""Protocol dissectors: framing, grammars and game tables. Pure: no I/O, no clock, no database."""
