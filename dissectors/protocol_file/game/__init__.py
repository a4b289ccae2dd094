"""Tables of protocol files: players, state, events and rules, and their presentation."""
