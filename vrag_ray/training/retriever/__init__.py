"""Train a retriever from pairs of a query and the passage that answers it: one vector each or several."""
