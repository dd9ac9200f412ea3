"""Embedding models by architecture, a file each, and which file reads which model."""
