"""The hunt: a symbolic search over many pages, to measure credit assignment with thousands of runs a second."""
