"""The engine for messages that are XML elements: framer, tree with places, codec."""
