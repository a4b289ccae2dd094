"""The output of `kiebitz probe`: progress, listings and reports."""
