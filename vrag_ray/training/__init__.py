"""Training the agent: rollouts, rewards, advantages, losses, and the loops that join them."""
