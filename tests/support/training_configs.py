"""The least that a configuration of training has to say, of reinforcement and of imitation."""

from __future__ import annotations

RL: dict[str, object] = {
    "name": "run",
    "model": {"path": "some/model"},
    "examples": "questions.jsonl",
    "steps": 4,
    "environment": {"collection": "pages"},
}
SFT: dict[str, object] = {"name": "run", "model": {"path": "some/model"}, "trajectories": "expert"}
