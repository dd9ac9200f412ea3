"""What decides the agent's next action: rules (``extractive``) or a model."""
