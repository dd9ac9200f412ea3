"""Conversations to imitate, in the form of LLaMA-Factory."""
