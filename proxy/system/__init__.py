"""Processes, signals, processor cores and the clock of the machine."""
