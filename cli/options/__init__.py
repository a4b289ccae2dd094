"""Options and arguments that need more than click's own types, and what they are read as."""
