"""The recorder of sessions, with rows, rotation and resuming."""
