"""Embedding models by architecture, a file each, and the two engines that run them."""
