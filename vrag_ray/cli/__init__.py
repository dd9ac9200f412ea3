"""``vrag``, the command line: a client of everything below it."""
