"""Answering queries: the legs, how their results are fused, and the facts of each hit."""
