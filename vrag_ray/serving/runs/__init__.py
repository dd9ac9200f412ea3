"""Runs of agents under way and finished: started, followed, rated and stored."""
