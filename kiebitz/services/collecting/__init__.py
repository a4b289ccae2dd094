"""Items that many taps have published, recorded as one session."""
