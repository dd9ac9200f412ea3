"""The HTTP service on Ray Serve: gateway, retriever, agent and library deployments."""
