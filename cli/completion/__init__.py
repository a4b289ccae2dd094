"""What a shell completes: the words that may come next, and how bash gets them."""

VARIABLE = "_KIEBITZ_COMPLETE"
"""In the environment: which shell asks what may come next."""
