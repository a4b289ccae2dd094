"""`python -m kiebitz` is `kiebitz`."""

from kiebitz.cli.main import main

main()
