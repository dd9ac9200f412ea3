"""Vectors in memory: the indexes of a shard, the actors that hold shards, and one shard in this process."""
