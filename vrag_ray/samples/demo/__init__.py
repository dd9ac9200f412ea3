"""A small corpus of the project's own about a made-up harbour, and the questions ``vrag demo`` asks of it."""
