"""Shell completion."""

VARIABLE = "_KIEBITZ_COMPLETE"
"""Environment variable that requests completion for a shell."""
