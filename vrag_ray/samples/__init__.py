"""Generated corpora of known truth: the demo's, and suites of questions for evaluations."""
