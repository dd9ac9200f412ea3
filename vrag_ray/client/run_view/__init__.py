"""A run as it stands at any moment, and its memory graph as a picture. Pure."""
