"""Knobeln: players roll a die, over UDP, one message per datagram. Made up as an example."""
