"""Interception: rules that hold, change, drop, delay or insert messages, and the engine that applies them."""
