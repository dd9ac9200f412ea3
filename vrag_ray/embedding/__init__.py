"""Passages and queries become vectors: one protocol, one text embedder that runs on any CPU."""
