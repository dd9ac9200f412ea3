"""Collections in memory: FAISS shards, the lexical leg, and the retriever that fuses what they find."""
