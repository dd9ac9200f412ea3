"""Copies of models with changes: validated, in the environment's despite, with what was not set still unset."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from vrag_ray.config import AgentConfig, IndexConfig, Settings
from vrag_ray.types.copies import with_changes


def test_a_change_is_validated_and_a_misspelt_field_refused() -> None:
    with pytest.raises(ValidationError, match="nprobe"):
        with_changes(IndexConfig(), {"nprobe": 0})
    with pytest.raises(ValidationError, match="nprobes"):
        with_changes(IndexConfig(), {"nprobes": 4})
    assert with_changes(IndexConfig(), {"nprobe": 4}).nprobe == 4


def test_fields_that_nobody_set_stay_unset() -> None:
    assert with_changes(IndexConfig(shards=2), {"nprobe": 4}).model_fields_set == {"shards", "nprobe"}
    settings = with_changes(Settings(), {"index": IndexConfig(shards=2)})
    assert settings.model_fields_set == {"index"}
    assert settings.index.model_fields_set == {"shards"}


def test_settings_take_a_change_although_the_environment_says_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VRAG_COLLECTION", "of-the-shell")
    monkeypatch.setenv("VRAG_AGENT__MAX_STEPS", "3")
    settings = Settings()
    assert (settings.collection, settings.agent.max_steps) == ("of-the-shell", 3)
    monkeypatch.setenv("VRAG_AGENT__MAX_STEPS", "5")
    changed = with_changes(settings, {"collection": "of-the-program"})
    assert (changed.collection, changed.agent.max_steps) == ("of-the-program", 3)
    with pytest.raises(ValidationError, match="agent"):
        with_changes(settings, {"agent": {"max_steps": "many"}})
    assert with_changes(settings, {"agent": AgentConfig(max_steps=7)}).agent.max_steps == 7
