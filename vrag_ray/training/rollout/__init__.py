"""Many episodes at once on one engine, and the trajectories that they leave behind."""
