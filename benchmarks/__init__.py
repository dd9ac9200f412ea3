"""Claims of the documentation, one script each, and the worlds that only studies need."""
