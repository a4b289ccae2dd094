"""Grammars, framers and codecs: from bytes to messages and back."""
