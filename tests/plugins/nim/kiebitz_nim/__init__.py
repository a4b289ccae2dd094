"""Nim over TCP: a protocol file, and its game in Python. Made up as an example."""

from kiebitz.protocol import packaged_protocol

NIM = packaged_protocol(__package__, "nim.toml")
