"""`python -m cli` is `kiebitz`."""

from cli.main import main

main()
