"""Messages held, changed, dropped, delayed and put in as they pass: what rules say, and the engine for it."""
