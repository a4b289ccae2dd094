"""The built-in protocols, one package each."""
