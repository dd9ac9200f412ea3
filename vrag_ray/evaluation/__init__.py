"""Measuring retrieval without labels of our own."""
