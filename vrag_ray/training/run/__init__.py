"""One training run as a whole: its start, its folder, where that is stored and what memory it takes."""
