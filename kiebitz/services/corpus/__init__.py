"""Adding captures to a corpus, on several cores or machines."""
