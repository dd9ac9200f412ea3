"""The deployment ``Policy``, one vLLM engine a replica, and the ``ChatModel`` that other deployments see of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vrag_ray.agent.chat import Delta
from vrag_ray.config import Settings, VllmConfig
from vrag_ray.policies.llm.chat_model import ChatRequest, Checkpoint, ModelLostError, TokenDelta, TokenRequest
from vrag_ray.policies.llm.model_family import require_model, served_family
from vrag_ray.policies.llm.vllm_engine import VllmEngine
from vrag_ray.policies.llm.vllm_stats import EngineStats, engine_stats
from vrag_ray.serving.deployments.sessions import sticky_sessions
from vrag_ray.serving.deployments.stream_throttle import StreamThrottle, joined_tokens, joined_words
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.serving.ray_faults import call, stream, unwrapped
from vrag_ray.types import Completion, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import expanded

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
NAME = "Policy"
_RAISED = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception): ")
"""How a line of a stack trace begins that says what was raised."""
QUEUED = 1000
"""Requests that one caller may have waiting for a replica with room; more are refused as overload."""


@dataclass(frozen=True, slots=True)
class PolicyState:
    """What one replica serves. ``shows_tools``: its chat template tells the model of ``ChatRequest.tools``."""

    replica: str
    pid: int
    served_name: str
    weights: str
    stats: EngineStats
    adapters: tuple[str, ...]
    max_model_len: int
    max_images: int
    shows_tools: bool


class Responses(Protocol[T_co]):
    """The values of a streaming handle call, as they come."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    async def __anext__(self) -> T_co: ...

    def cancel(self) -> None: ...


class PolicyService:
    """A replica. Its streams end the generation when their reader goes away.

    ``weights`` of a request are those that its caller loaded last. A replica that started since then loads them first.
    """

    def __init__(self, settings: Settings) -> None:
        config = _vllm(settings)
        require_model(config.model, "vllm.model")
        for name, adapter in config.adapters.items():
            require_model(adapter, f"vllm.adapters.{name}")
        if settings.agent.family is not None:
            # Whoever built the application may not have had the model's files; this node has.
            served_family(settings.agent.family, config.model, "vllm.model")
        self._engine = VllmEngine(config)
        self._throttle = StreamThrottle()

    async def chat(self, request: ChatRequest, weights: Checkpoint | None) -> AsyncGenerator[Delta | Completion]:
        await self._catch_up(weights)
        async with (
            aclosing(self._engine.chat(request)) as pieces,
            aclosing(self._throttle.apply(pieces, joined_words)) as paced,
        ):
            async for piece in paced:
                yield piece

    async def generate(
        self, request: TokenRequest, weights: Checkpoint | None
    ) -> AsyncGenerator[TokenDelta | Completion]:
        await self._catch_up(weights)
        async with (
            aclosing(self._engine.generate(request)) as pieces,
            aclosing(self._throttle.apply(pieces, joined_tokens)) as paced,
        ):
            async for piece in paced:
                yield piece

    async def load_weights(self, weights: Checkpoint) -> PolicyState:
        await self._engine.load_weights(weights)
        return await self.state()

    async def _catch_up(self, weights: Checkpoint | None) -> None:
        if weights is not None:
            await self._engine.catch_up(weights)

    async def state(self) -> PolicyState:
        from ray import serve

        config = self._engine.config
        return PolicyState(
            replica=serve.get_replica_context().replica_id.unique_id,
            pid=os.getpid(),
            served_name=config.served_name,
            weights=self._engine.weights,
            stats=engine_stats(),
            adapters=tuple(sorted(config.adapters)),
            max_model_len=config.max_model_len,
            max_images=config.max_images,
            shows_tools=self._engine.shows_tools,
        )

    async def check_health(self) -> None:
        """Called by Serve; a replica that raises three times in a row is replaced."""
        await self._engine.check_health()

    def __del__(self) -> None:
        # Serve calls this before it ends the replica's process. The constructor may have failed before the engine.
        if hasattr(self, "_engine"):
            self._engine.shutdown()


class ServedModel:
    """Implements ``ChatModel`` over a handle of ``Policy``; one instance serves any number of requests."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle
        self._streaming = handle.options(stream=True)
        self._weights: Checkpoint | None = None

    def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        """As ``ChatModel.chat``. Raises ModelLostError when the replica goes away before the reply is whole."""
        return _pieces(
            self._streaming.options(method_name="chat", session_id=request.session).remote, request, self._weights
        )

    def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        """As ``VllmEngine.generate``, with the errors of ``chat``."""
        generate = self._streaming.options(method_name="generate", session_id=request.session).remote
        return _pieces(generate, request, self._weights)

    async def load_weights(self, source: str, version: str) -> Sequence[PolicyState]:
        """Load the checkpoint in ``source`` (a folder or a URI) on every replica, and ``expect`` it from then on."""
        weights = Checkpoint(source, version)
        states = await self._everywhere("load_weights", weights)
        self.expect(weights)
        return states

    def expect(self, weights: Checkpoint) -> None:
        """What replies to this instance are to be by: a replica that starts with ``vllm.model`` loads them first.

        A replica that has other weights keeps them: they came from another caller, or are newer. ``weights`` have to
        stay where they are as long as replicas may start.
        """
        self._weights = weights

    async def states(self) -> Sequence[PolicyState]:
        """The state of every replica that runs now."""
        return await self._everywhere("state")

    async def _everywhere(self, method: str, *arguments: Checkpoint) -> Sequence[PolicyState]:
        """Raises ReplicaLostError where no replica runs, VragError where some could not do it."""
        results = await call(
            self._handle.broadcast(method, *arguments).results_async(return_exceptions=True), part="policy"
        )
        faults = [result for result in results if isinstance(result, Exception)]
        if faults:
            fault = unwrapped(faults[0], "policy")
            raise VragError(f"{method} failed on {len(faults)} of {len(results)} replicas: {fault}") from fault
        return list(results)


def policy_deployment(settings: Settings) -> Any:
    """The deployment to ``bind(settings)``. Raises VragError where ``settings.vllm`` is not set."""
    from ray import serve

    config = _vllm(settings)
    configured = serve.deployment(
        name=NAME,
        num_replicas=config.replicas,
        max_ongoing_requests=config.max_num_seqs,
        max_queued_requests=QUEUED,
        backpressure_config={"status_code": 429, "retry_after_s": 1},
        health_check_period_s=10,
        health_check_timeout_s=30,
        request_router_config=sticky_sessions(),
    )
    if config.tensor_parallel == 1 or config.num_gpus == 0:
        alone = {"num_cpus": config.num_cpus, "num_gpus": config.num_gpus}
        return configured(PolicyService).options(ray_actor_options=alone)
    return configured(PolicyService).options(
        # The replica itself takes no GPU: vLLM's ranks take one bundle each.
        ray_actor_options={"num_cpus": config.num_cpus, "num_gpus": 0},
        placement_group_bundles=[{"CPU": config.num_cpus, "GPU": config.num_gpus}] * config.tensor_parallel,
        placement_group_strategy="PACK",
    )


class PolicyAlone:
    """The ingress of an application that has a policy and nothing else. It answers no request: behind HAProxy, Serve
    refuses a router like that of the policy for an ingress."""

    def __init__(self, policy: DeploymentHandle) -> None:
        self._policy = policy


def serve_policy(settings: Settings, app: str) -> None:
    """Deploy the policy of ``settings`` as the application ``app``, without HTTP, and wait until it runs."""
    from ray import serve

    ingress = serve.deployment(PolicyAlone, ray_actor_options={"num_cpus": 0})
    serve.run(ingress.bind(policy_deployment(settings).bind(settings)), name=app, route_prefix=None)


def served_policy(app: str) -> ServedModel:
    """The policy that ``serve_policy`` deployed, here or in another process of the cluster."""
    from ray import serve

    return ServedModel(serve.get_deployment_handle(NAME, app))


def with_absolute_folders(config: VllmConfig) -> VllmConfig:
    """The same folders for every process: replicas need not share the working folder of the process that builds the
    app."""

    def absolute(name: str) -> str:
        folder = expanded(name)
        return str(folder.absolute()) if folder.is_dir() else name

    adapters = {name: absolute(folder) for name, folder in config.adapters.items()}
    return with_changes(config, {"model": absolute(config.model), "adapters": adapters})


def gpu_shortage(config: VllmConfig, gpus_of_nodes: Sequence[float]) -> str:
    """Why no replica fits on nodes with these numbers of GPUs, in words; "" where one does."""
    if config.num_gpus == 0:
        return ""
    ranks = sum(math.floor(gpus / config.num_gpus + 1e-6) for gpus in gpus_of_nodes)
    if ranks >= config.tensor_parallel:
        return ""
    total = sum(gpus_of_nodes)
    has = f"{total:g} GPU{'' if total == 1 else 's'} on {len(gpus_of_nodes)} nodes" if total else "no GPU"
    takes = f"{config.num_gpus:g}" + (f" for each of {config.tensor_parallel} ranks" * (config.tensor_parallel > 1))
    return (
        f"the language model cannot start: the cluster has {has}, and a replica takes {takes} (vllm.num_gpus, "
        "vllm.tensor_parallel). Add a node with GPUs, or set vllm.num_gpus to 0 to serve on the CPU"
    )


def cluster_gpus() -> list[float]:
    """The GPUs of each node of the cluster that is alive."""
    import ray

    return [float(node["Resources"].get("GPU", 0.0)) for node in ray.nodes() if node["Alive"]]


def why_not_running(settings: Settings) -> str:
    """Why no replica of the policy runs: what the cluster lacks, or how its last start failed; else it is starting.

    To be called in a replica. Asks the cluster, and blocks meanwhile.
    """
    from ray import serve

    shortage = gpu_shortage(_vllm(settings), cluster_gpus())
    if shortage:
        return shortage
    application = serve.status().applications.get(serve.get_replica_context().app_name)
    policy = application.deployments.get(NAME) if application is not None else None
    reason = failed_start(policy.message) if policy is not None else ""
    return f"the language model cannot start: {reason}" if reason else "the language model is starting"


def failed_start(message: str) -> str:
    """The fault itself, of what Serve says of a deployment whose replicas raised as they started; "" for any other."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    return _RAISED.sub("", raised[-1]) if raised else ""


async def _pieces(
    method: Callable[[R, Checkpoint | None], Responses[T]], request: R, weights: Checkpoint | None
) -> AsyncGenerator[T]:
    """What a streaming call yields; ends the call when the reader goes away."""
    responses = method(request, weights)
    try:
        async for piece in stream(responses, "policy"):
            yield piece
    except NotReadyError as error:
        raise ModelLostError("the model's replica was lost before its reply was whole: another try may help") from error
    except BaseException:
        responses.cancel()
        raise


def _vllm(settings: Settings) -> VllmConfig:
    if settings.vllm is None:
        raise VragError("no model is configured: set vllm.model to a folder or a hub id")
    return settings.vllm
