"""Pictures in prompts: which of them, how many pixels each, and what a crop is cut from."""
