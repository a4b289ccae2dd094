"""The table in the terminal: one looks at it, moves in time, and opens the message that did it."""
