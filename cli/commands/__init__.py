"""The commands, a module each, named as the command; `cli.main` loads the one that is asked for."""
