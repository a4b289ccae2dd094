"""Byte sources: relays, sniffers, capture files and taps. Nothing here knows a game protocol."""
