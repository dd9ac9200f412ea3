"""The policy without a model: rules that search, read and answer with quotes."""
