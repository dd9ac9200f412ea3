"""What computes the vectors of a model: transformers, or vLLM's pooling runner."""
