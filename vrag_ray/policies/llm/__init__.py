"""Policies that are language models: vLLM in this process's care, or any server that speaks OpenAI's API."""
