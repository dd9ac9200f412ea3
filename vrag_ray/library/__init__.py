"""Pages, words and pictures of stored documents, and the evidence that agents take from a collection."""
