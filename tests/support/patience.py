"""How long a test waits for what has to come."""

HANGS_AFTER_S = 300.0
"""Of one wait: long enough for a machine with other work, shorter than the time limit of a test. It only guards against
a hang: no test says by it how fast something is."""
