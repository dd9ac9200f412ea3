"""Trajectories of experts for supervised fine-tuning: sampled, filtered, judged and stored."""
