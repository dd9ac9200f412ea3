"""all-MiniLM-L6-v2, the texts' own embedder: weights that are proved, an ONNX graph, its vectors."""
