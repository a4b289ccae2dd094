"""What `kiebitz probe` shows: progress, listings and reports."""
