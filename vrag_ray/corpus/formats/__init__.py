"""One reader a kind of document: PDF, pictures, video and text. They run in the decoding child only."""
