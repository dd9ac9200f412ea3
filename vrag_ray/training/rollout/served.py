"""Rollouts by a policy behind Ray Serve: as many replicas as needed, on other machines if need be.

Weights go over through the run's storage, which trainer and replicas share. Each new version replaces the one before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING

from vrag_ray.config import Settings, VllmConfig
from vrag_ray.policies.llm.chat_model import Checkpoint, TokenDelta, TokenRequest
from vrag_ray.serving.deployments.policy import ServedModel, serve_policy, served_policy
from vrag_ray.training.config import RLConfig
from vrag_ray.training.run.storage import RunStorage
from vrag_ray.training.trainer.weights import save
from vrag_ray.types import Completion
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from torch import Tensor

    from vrag_ray.training.trainer.worker import Worker

HANDED_OVER = "serving"
EXACT = {"generation_config": "vllm", "logprobs_mode": "processed_logprobs"}
"""Nothing of the model's own sampling defaults, and log-probs of what is really sampled from."""


class ServedBackend:
    """Implements ``RolloutBackend``; made by ``open``. The first rank deploys and ends the deployment, and Serve where
    it did not run before (``owns_serve``): without HTTP it would be in the way of a service."""

    def __init__(
        self, model: ServedModel, app: str, storage: RunStorage, worker: Worker, *, owns_serve: bool = False
    ) -> None:
        self._model = model
        self._app = app
        self._storage = storage
        self._worker = worker
        self._last = ""
        self._owns_serve = owns_serve

    @classmethod
    async def open(cls, config: RLConfig, served: VllmConfig, worker: Worker) -> ServedBackend:
        """Deploy ``served`` with the model of this run; every rank gets a handle of it."""
        from ray import serve
        from ray.serve.context import _get_global_client

        app = f"rollouts-{config.name}"
        ranks, owns_serve = worker.ranks, False
        if ranks.rank == 0:
            owns_serve = _get_global_client(raise_if_no_controller_running=False) is None
            exact = with_changes(served, {"model": worker.source, "engine_args": EXACT | served.engine_args})
            settings = Settings(vllm=exact)
            # Where Serve does not run yet: no proxy, since only handles are used.
            serve.start(proxy_location="Disabled")
            serve_policy(settings, app)
        ranks.wait()
        model, storage = served_policy(app), RunStorage(config.storage, config.name)
        return cls(model, app, storage, worker, owns_serve=owns_serve)

    def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        return self._model.generate(request)

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        """On every replica, those that start later too. All ranks wait until the first one has brought them over."""
        whole = {name: weight.detach().cpu() for name, weight in weights}
        target = f"{HANDED_OVER}/{version}"
        if self._worker.ranks.rank == 0:
            with self._storage.staged(target) as folder:
                save(self._worker.model, self._worker.processor, whole, folder.path)
            await self._model.load_weights(self._storage.uri(target), version)
            if self._last not in ("", target):
                self._storage.delete_folder(self._last)
            self._last = target
        self._worker.ranks.wait()
        self._model.expect(Checkpoint(self._storage.uri(target), version))

    async def sleep(self) -> bool:
        """The replicas have devices of their own."""
        return False

    async def wake(self) -> None:
        """Nothing slept."""

    async def close(self) -> None:
        from ray import serve

        self._worker.ranks.wait()
        if self._worker.ranks.rank == 0:
            serve.delete(self._app)
            if self._owns_serve and not serve.status().applications:
                serve.shutdown()
            if self._last:
                self._storage.delete_folder(self._last)
