"""Wireshark dissectors in Lua, generated from the declarative part of a protocol."""
