"""Answering queries: the legs, how their results are fused, and what is told of each hit."""
