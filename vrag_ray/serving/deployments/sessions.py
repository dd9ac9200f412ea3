"""Routing by session: which replica gets the calls that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray.serve.config import RequestRouterConfig

ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"


def sticky_sessions() -> RequestRouterConfig:
    """A session's calls go to one replica.

    Those are the turns of a run, for the policy whose prefix cache its first turn filled, and the calls for a run, for
    the agent that runs it.

    A session stays on its replica as long as that lives and has room, else it goes to the next on the router's ring;
    requests without a session are spread evenly. Ray's default router looks at queues alone.
    """
    from ray.serve.config import RequestRouterConfig

    return RequestRouterConfig(request_router_class=ROUTER)
