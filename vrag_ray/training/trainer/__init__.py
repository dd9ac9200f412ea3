"""The model in training: batches, log-probs, gradients, shards, weights and the optimiser."""
