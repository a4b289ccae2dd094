"""Anonymization of sessions: the same items, with pseudonyms for names, texts and addresses."""
