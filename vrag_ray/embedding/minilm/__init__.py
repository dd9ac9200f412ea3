"""all-MiniLM-L6-v2, the default embedder of texts: weights that are proved, an ONNX graph, its vectors."""
