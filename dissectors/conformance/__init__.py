"""What a protocol declares for `kiebitz probe`: expected reactions and bots."""
