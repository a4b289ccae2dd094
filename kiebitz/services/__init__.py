"""Services behind the commands: recording, importing, interception, replay, probing and sharing."""
