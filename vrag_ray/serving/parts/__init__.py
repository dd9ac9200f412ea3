"""The parts behind the gateway, without Ray: deployments put each into replicas, ``serving.here`` into one process."""
