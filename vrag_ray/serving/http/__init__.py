"""The gateway: routes, keys, limits, error bodies and event streams. Knows nothing of Ray."""
