"""The flaws of a session as they are shown: one by one with their bytes, and summed up."""
