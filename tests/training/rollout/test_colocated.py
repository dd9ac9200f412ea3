"""The engine of a training worker that vLLM refuses; what it does is tested in ``tests/vllm/test_colocated.py``."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from pydantic import BaseModel, model_validator

from vrag_ray.training.config import EngineConfig
from vrag_ray.training.rollout.colocated import ColocatedEngine
from vrag_ray.types import VragError


class _Refused(BaseModel):
    """As vLLM refuses a setting: by an error of pydantic, here one that could be pickled."""

    max_model_len: int

    @model_validator(mode="after")
    def _fits(self) -> _Refused:
        raise ValueError(f"max_model_len ({self.max_model_len}) is greater than the positions of the model")


@pytest.mark.parametrize("by_pydantic", [True, False])
def test_a_setting_that_vllm_refuses_is_named_with_its_reason(
    by_pydantic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(**arguments: object) -> object:
        if by_pydantic:
            return _Refused.model_validate(arguments)
        raise ValueError("max_model_len (40960) is greater than the positions of the model")

    vllm = ModuleType("vllm")
    monkeypatch.setattr(vllm, "LLM", make, raising=False)
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    config = EngineConfig(max_model_len=40_960)
    expected = r"^vLLM refuses tiny with rollout\.engine as it is: max_model_len \(40960\) is greater than"
    with pytest.raises(VragError, match=expected):
        ColocatedEngine("tiny", config, temperature=1.0, distributed=False, seed=0)
