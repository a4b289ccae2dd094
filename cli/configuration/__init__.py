"""What a person has settled once for all commands: their configuration file, with names for addresses."""
