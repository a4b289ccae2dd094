"""How a difference of two sessions is shown: as a report, as JSON, and for two states."""
