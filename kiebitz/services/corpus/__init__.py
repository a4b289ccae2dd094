"""Adding captures to a corpus, on many cores or machines."""
