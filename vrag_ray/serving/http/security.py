"""Who may talk to the gateway: bearer keys, or this machine only.

Ray's own token protects the dashboard and the job server, not Serve's HTTP port, so the gateway guards itself.
Without keys it answers only requests that arrive on a loopback address, name a loopback host (which stops a web
page from reaching it through DNS rebinding) and do not come from a page of another origin.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from vrag_ray.config import Auth, ServingConfig
from vrag_ray.types import VragError
from vrag_ray.types.loopback import is_loopback

KEYS_VARIABLE = "VRAG_API_KEYS"
_REMEDY = (
    " in the process that builds the service: a running cluster does not see the variables of `serve run`, pass them "
    "under applications: runtime_env: env_vars in the Serve config"
)
_LINKED = re.compile(r"/v1/documents/[0-9a-f]{8,64}/(?:pages/\d{1,6}\.png|frames/[\d.]{1,20}\.png|original)")
"""What citations show: nothing else can be signed."""
_TIME = re.compile(r"\d{1,12}")
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Probes of a load balancer carry no key; these replies hold the collection's name and size, and nothing in it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not served."""

    status: int
    type: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Security:
    """The rule for every request. Keys are stored as digests, so that comparing takes the same time for any input."""

    key_digests: tuple[bytes, ...] = ()
    allow_open: bool = False
    origins: frozenset[str] = frozenset()
    """Whose pages may send requests without a key too (``serving.cors_origins``)."""

    @classmethod
    def from_environment(
        cls, config: ServingConfig, environment: Mapping[str, str] | None = None, *, callers_own: bool = True
    ) -> Security:
        """Read ``VRAG_API_KEYS`` (comma separated).

        ``callers_own`` says whether the environment is that of the shell that starts the service; where it may not be,
        a service without keys must be requested. Raises VragError where nothing would protect the service, and where
        the variable holds separators alone.
        """
        text = (os.environ if environment is None else environment).get(KEYS_VARIABLE, "")
        keys = [key.strip() for key in text.split(",") if key.strip()]
        if text and not keys:
            # A template whose secret is missing: its author does not expect an open service.
            raise VragError(
                f"{KEYS_VARIABLE} is set and has no key in it: put one or more keys there, separated by commas, or "
                "unset it"
            )
        if not keys:
            _check_keyless(config, callers_own=callers_own)
        return cls(tuple(_digest(key) for key in keys), config.auth is Auth.OPEN, frozenset(config.cors_origins))

    def check_proxy(self, host: str) -> None:
        """Behind HAProxy every request arrives on a loopback address. Raises VragError where nothing would protect the
        service, since HAProxy listens on ``host``, which other machines can reach."""
        if not (self.key_digests or self.allow_open or is_loopback(host)):
            raise VragError(
                f"no key is set, and HAProxy listens on {host}, which other machines can reach: put one or more keys "
                f"in {KEYS_VARIABLE}, set serving.auth to open to accept everyone, start Serve on 127.0.0.1, or "
                "start Ray with RAY_SERVE_ENABLE_HA_PROXY=0"
            )

    def refuse(
        self, method: str, path: str, headers: Mapping[str, str], server_host: str | None, query: str = ""
    ) -> Refusal | None:
        """None when the request may pass. ``headers`` have lower-case names; ``server_host`` is the local address;
        ``query`` is that of the URL."""
        if path in OPEN_PATHS:
            return None
        if self.key_digests:
            passes = self._knows(headers.get("authorization", "")) or self._is_signed(method, path, query)
            return None if passes else _UNAUTHENTICATED
        return None if self.allow_open else _refuse_foreign(method, headers, server_host, self.origins)

    def signature(self, path: str, expires: int) -> str:
        """A query that lets a browser without a key fetch ``path`` until ``expires``, in seconds since 1970; "" where
        no keys are set. It ends with the keys, too."""
        if not self.key_digests:
            return ""
        return urlencode({"expires": expires, "signature": self._mac(path, expires)})

    def _is_signed(self, method: str, path: str, query: str) -> bool:
        fields = dict(parse_qsl(query))
        expires = fields.get("expires", "")
        if method not in ("GET", "HEAD") or not _LINKED.fullmatch(path) or not _TIME.fullmatch(expires):
            return False
        given = fields.get("signature", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, self._mac(path, int(expires)).encode()) and time.time() < int(expires)

    def _mac(self, path: str, expires: int) -> str:
        secret = b"".join(sorted(self.key_digests))
        return hmac.new(secret, f"{expires} {path}".encode(), hashlib.sha256).hexdigest()

    def _knows(self, authorization: str) -> bool:
        scheme, _, key = authorization.partition(" ")
        key = key.strip()
        # Headers are read as Latin-1, in which some clients send a key beyond ASCII; others send it in UTF-8.
        given = (_digest(key), hashlib.sha256(key.encode("latin-1", "replace")).digest())
        # No early exit: the time must not tell which key came close.
        matches = [hmac.compare_digest(digest, known) for known in self.key_digests for digest in given]
        return scheme.lower() == "bearer" and any(matches)


def _check_keyless(config: ServingConfig, *, callers_own: bool) -> None:
    if config.auth is Auth.KEYS:
        raise VragError(f"serving.auth is keys, and {KEYS_VARIABLE} is not set{_REMEDY}")
    if config.auth is None and not callers_own:
        raise VragError(
            f"{KEYS_VARIABLE} is not set{_REMEDY}; or set serving.auth to loopback (VRAG_SERVING__AUTH=loopback) "
            "to serve this machine without keys"
        )
    if config.auth is not Auth.OPEN and not is_loopback(config.host):
        raise VragError(
            f"serving.host is {config.host}, which other machines can reach, and no key is set: put one or more "
            f"in {KEYS_VARIABLE}, bind 127.0.0.1, or set serving.auth to open to accept everyone"
        )


def _refuse_foreign(
    method: str, headers: Mapping[str, str], server_host: str | None, origins: frozenset[str]
) -> Refusal | None:
    arrived_here = server_host is None or is_loopback(server_host)
    if not arrived_here or not is_loopback(_host_name(headers.get("host", ""))):
        return _NOT_LOCAL
    origin = headers.get("origin")
    is_foreign = origin is not None and urlsplit(origin).netloc != headers.get("host") and origin not in origins
    if method not in ("GET", "HEAD") and is_foreign:
        return _OTHER_ORIGIN
    return None


def _host_name(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


_UNAUTHENTICATED = Refusal(
    401, "authentication_error", "invalid_api_key", "send a known key as 'Authorization: Bearer <key>'"
)
_NOT_LOCAL = Refusal(
    403,
    "permission_error",
    "not_local",
    f"without keys this server answers its own machine only: set {KEYS_VARIABLE} on the server and send one of them",
)
_OTHER_ORIGIN = Refusal(
    403, "permission_error", "cross_origin", "requests from pages of another origin are refused without a key"
)
