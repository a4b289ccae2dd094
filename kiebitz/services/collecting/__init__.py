"""Recording of the items published by several taps as one session."""
