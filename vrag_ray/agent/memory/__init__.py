"""The memory graph: its nodes, what each picture of it matters, and what of it a model is shown again."""
