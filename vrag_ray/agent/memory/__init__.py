"""The memory graph as a value: its nodes, how much each remembered picture matters, and its drawing."""
