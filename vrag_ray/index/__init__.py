"""Collections on disk, FAISS shards in memory, and the retriever over them."""
