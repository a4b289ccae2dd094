"""A protocol's declarations for `kiebitz probe`: expected reactions and bots."""
