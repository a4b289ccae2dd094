"""Taps: publishing items from the machines that record them, and merging them in one place."""
