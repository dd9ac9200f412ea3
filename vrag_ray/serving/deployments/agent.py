"""The agent deployment: runs over the handles of retriever, library and policy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.config import Settings
from vrag_ray.serving.deployments.handles import HandleSearch
from vrag_ray.serving.errors import NoAnswerError, NotReadyError, ReplicaLostError
from vrag_ray.serving.parts.agents import Agents
from vrag_ray.serving.ray_faults import call_again
from vrag_ray.types import Locator, PageText, VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

    from vrag_ray.policies.llm.chat_model import ChatModel

MODEL_ANSWERS_WITHIN_S = 0.7
"""As long again for the reason where no replica answers; both are less than ``/readyz`` waits."""


class HandlePages:
    """``Pages`` over the library."""

    def __init__(self, library: DeploymentHandle) -> None:
        self._library = library

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return await call_again(lambda: self._library.page_texts.remote(tuple(pages)), "library")

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return await call_again(lambda: self._library.pictures.remote(tuple(requests)), "library")


class AgentService(Agents):
    """``Agents`` as a deployment."""

    async def __init__(  # type: ignore[misc]
        self,
        settings: Settings,
        retriever: DeploymentHandle,
        library: DeploymentHandle,
        policy: DeploymentHandle | None = None,
    ) -> None:
        from vrag_ray.serving.runs.factory import endpoint_model

        async def check(names: Sequence[str], filter: SearchFilter | None) -> None:
            await call_again(lambda: retriever.check.remote(names, filter), "retriever")

        model: ChatModel | None = endpoint_model(settings)
        if policy is not None:
            from vrag_ray.serving.deployments.policy import ServedModel

            model = ServedModel(policy)
        super().__init__(settings, HandleSearch(retriever, waits=True), HandlePages(library), check, model)

    def __del__(self) -> None:
        # Serve calls this when it stops a replica.
        if hasattr(self, "_runs"):
            self._runs.close()

    async def ready(self) -> bool:
        """Whether there is a language model to ask. Raises NotReadyError where one that is served here does not run: it
        starts, or cannot start, and why."""
        from vrag_ray.serving.deployments.policy import ServedModel, why_not_running

        if isinstance(self._model, ServedModel):
            states = asyncio.ensure_future(self._model.states())
            await asyncio.wait({states}, timeout=MODEL_ANSWERS_WITHIN_S)
            if not states.done():
                states.cancel()
                raise NoAnswerError(f"the language model did not answer within {MODEL_ANSWERS_WITHIN_S:g} s")
            try:
                replicas = states.result()
            except ReplicaLostError:
                replicas = ()
            if not replicas:
                reason = asyncio.ensure_future(asyncio.to_thread(why_not_running, self._settings))
                await asyncio.wait({reason}, timeout=MODEL_ANSWERS_WITHIN_S)
                raise NotReadyError(reason.result() if reason.done() else "no replica of the language model runs")
        return self._model is not None
