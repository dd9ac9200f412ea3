"""The whole service in this process, without Ray: one event loop in a thread of its own, behind uvicorn."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable

import uvicorn

from vrag_ray.config import Settings
from vrag_ray.serving.http.gateway import create_api
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.parts.local import local_parts
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.system import ServedSystem

OPEN_REPLIES_END_WITHIN_S = 2
"""When the service stops: readers of a run's events may hold their requests for as long as it takes."""
LAST_EVENTS_ARE_SENT_WITHIN_S = 2
"""After that runs are cancelled and streams end with an event that says so; what still goes on then is cut off."""


def why_ray(settings: Settings) -> str:
    """What of ``settings`` only Ray can serve, in a few words; "" where this process can."""
    index = settings.index
    reasons = {
        "RAY_ADDRESS names a cluster": os.environ.get("RAY_ADDRESS"),
        "vllm.model needs a replica": settings.vllm is not None,
        "index.num_gpus is set": index.num_gpus,
        "serving.num_gpus is set": settings.serving.num_gpus,
        "index.replicas is set": index.replicas > 1,
        "index.shards is set": "shards" in index.model_fields_set and index.shards > 1,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class ServerThread:
    """The service of ``settings`` on ``listening``, from ``start`` to ``stop``. Signals stay with the main thread."""

    def __init__(self, settings: Settings, security: Security, listening: socket.socket) -> None:
        self._settings, self._security, self._listening = settings, security, listening
        self._loop = _event_loop()()
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._accepting = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="vrag-service", daemon=True)

    def start(self) -> None:
        """Returns once collections are loaded, or could not be, and requests are accepted. Raises what a part that
        cannot be made raises."""
        self._thread.start()
        self._accepting.wait()
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """Returns once runs are stored and children have ended."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join()

    def _end(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
        elif self._serving is not None:
            self._serving.cancel()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except (Exception, asyncio.CancelledError) as error:
            if self._accepting.is_set():
                logging.getLogger(__name__).exception("the service has ended by a fault of its own; start it again")
            self._fault = error
        finally:
            self._accepting.set()

    async def _serve(self) -> None:
        self._serving = asyncio.current_task()
        async with local_parts(self._settings) as parts:
            system = ServedSystem(parts, ServingPaths.of(self._settings).uploads)
            closing = asyncio.Event()

            async def end_replies() -> None:
                await asyncio.sleep(OPEN_REPLIES_END_WITHIN_S)
                closing.set()
                await parts.agents.end_runs()

            api = create_api(system, self._settings.serving, self._security, behind_serve=False, closing=closing)
            config = uvicorn.Config(
                api,
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=OPEN_REPLIES_END_WITHIN_S + LAST_EVENTS_ARE_SENT_WITHIN_S,
            )
            self._server = _Server(config, self._accepting, end_replies)
            await self._server.serve(sockets=[self._listening])
            system.close()


class _Server(uvicorn.Server):
    """Sets ``accepting`` once it accepts requests, and runs ``end_replies`` beside its wait for those under way."""

    def __init__(
        self, config: uvicorn.Config, accepting: threading.Event, end_replies: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(config)
        self._accepting = accepting
        self._end_replies = end_replies

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._accepting.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.ensure_future(self._end_replies())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
