"""Mosaic: pages of coloured cells, which a model of a million parameters learns to read from nothing on two cores.

``mosaic`` generates pages and questions and writes them as files for a real collection; ``agent`` sizes the agent;
``expert`` plays it by the truth, with mistakes on demand. The curriculum is in ``benchmarks/mosaic``: a small Qwen
model of random weights whose tokenizer knows this world, exercises that teach it to see, and episodes without a
collection.
"""
