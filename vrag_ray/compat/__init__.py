"""The classes of the original project, with its arguments and results, over this one's core."""
