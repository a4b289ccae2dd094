"""What many taps have published is recorded as one session."""
