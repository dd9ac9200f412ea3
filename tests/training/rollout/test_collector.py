"""Looking for unreachable objects seldom, in a process of its own: the collector's settings are the whole process's."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
import weakref

from vrag_ray.training.rollout.collector import collect_seldom


class Node:
    def __init__(self):
        self.own = self


there_before = [Node() for _ in range(1000)]
collect_seldom()
looks = []
gc.callbacks.append(lambda phase, info: looks.append(phase == "start"))
held = [[] for _ in range(40_000)]
print("looks while 40,000 objects were made:", sum(looks))
lost = weakref.ref(Node())
more = [[] for _ in range(100_000)]
print("an unreachable cycle is", "there" if lost() else "gone")
print("objects from before that are looked at:", sum(isinstance(one, Node) for one in gc.get_objects()))
"""


def test_objects_that_are_held_are_not_looked_at_and_cycles_are_still_freed():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "looks while 40,000 objects were made: 0",
        "an unreachable cycle is gone",
        "objects from before that are looked at: 0",
    ]
