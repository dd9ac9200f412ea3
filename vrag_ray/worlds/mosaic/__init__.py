"""Mosaic: pages of coloured cells, which a model of a million parameters learns to read from nothing on two cores.

``world`` generates pages and questions and writes them as files for a real collection; ``agent`` sizes the agent;
``expert`` plays it by the truth, with mistakes on demand; ``model`` saves a small Qwen model of random weights whose
tokenizer knows this world; ``exercises`` teach it to see. ``rehearsal`` runs episodes without a collection.
"""
