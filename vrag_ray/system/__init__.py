"""Collections to search and to ask: opened in this process, or behind a service."""
