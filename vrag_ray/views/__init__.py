"""What a run looks like: as it stands at any moment, in words, and its memory graph as a picture. Pure."""
