"""A collection on an object store: what its URI says, who may write to it, and its originals on the local disk."""
