"""Wire forms in which a policy states its actions. One module a protocol."""
