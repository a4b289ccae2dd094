"""WebSocket (RFC 6455): messages of a protocol that are sent in its frames.

A stream begins with an HTTP/1.1 upgrade, `handshake`. Its messages are then in frames: fragmented, masked by
clients, compressed (RFC 7692). The `framer` undoes all that. What it emits is a *plain frame*: one frame with
the shortest header, without mask and compression, or the text of a handshake. `codec` wraps the protocol's
own codec, which sees only the payload. `encapsulation` leads from recorded bytes to plain frames and back.
"""
