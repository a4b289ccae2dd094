"""A corpus on the command line: captures go in on many cores or machines, and listings come out."""
