"""Pictures that a caller sends, as data URLs: read out of the request, and decoded where they can do no harm."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import QuestionPicture
from vrag_ray.client.schemas import MAX_PICTURE_BYTES, MAX_PICTURE_URL
from vrag_ray.config import DecodeLimits
from vrag_ray.types import DocumentKind, InvalidError, Locator

if TYPE_CHECKING:
    from vrag_ray.corpus.sandbox.sandbox import Sandbox

DPI = 150.0
"""At this the sandbox gives pictures their own pixels."""
MAX_PIXELS = 4_000_000
"""A picture with more is scaled down: no model behind this looks at more."""
LIMITS = DecodeLimits(max_pixels=32_000_000)
_DATA = re.compile(
    r"data:(?:image/[a-z0-9.+-]{1,32}|application/octet-stream)?(?:;[a-z]{1,16}=[\w.-]{1,64})?;base64,", re.IGNORECASE
)
"""Some clients do not know of what type a picture is: decoding shows it."""


def is_data_url(text: str) -> bool:
    """Whether ``text`` begins as a picture in a data URL does."""
    return _DATA.match(text) is not None


def sent_file(text: str, param: str) -> bytes:
    """The file in a data URL, as it was sent: nobody has looked into it yet.

    Raises InvalidError (for ``param``) for any other URL: what a request names is not fetched, or it could make this
    server ask others in its own network.
    """
    data = _DATA.match(text)
    if data is None:
        raise InvalidError(f"{param}: URLs are not fetched: send the picture as data:image/…;base64,…", param=param)
    if len(text) > MAX_PICTURE_URL:
        raise InvalidError(f"{param}: the picture has more than {MAX_PICTURE_BYTES >> 20} MiB", param=param)
    try:
        file = base64.b64decode("".join(text[data.end() :].split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidError(f"{param}: the data is not base64: {error}", param=param) from error
    if len(file) > MAX_PICTURE_BYTES:
        raise InvalidError(f"{param}: the picture has more than {MAX_PICTURE_BYTES >> 20} MiB", param=param)
    return file


_NAME = "picture"
"""Of the file that is decoded; its sender has not named it."""


class SentPictures:
    """Decodes sent files in one killable child process, started at the first of them."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        # A sandbox serves one thread.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sent-pictures")

    async def png(self, data: bytes, param: str) -> bytes:
        """Upright RGB on white, as PNG. Raises InvalidError (for ``param``) where the file is no picture."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._decode, data, param)

    async def question(self, url: str | None, param: str = "picture") -> QuestionPicture | None:
        """The picture of a question, from its data URL; None without one."""
        if url is None:
            return None
        data = sent_file(url, param)
        return QuestionPicture(await self.png(data, param), hashlib.sha256(data).hexdigest(), len(data))

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)
        if self._sandbox is not None:
            self._sandbox.close()

    def _decode(self, data: bytes, param: str) -> bytes:
        """Blocking."""
        from vrag_ray.corpus.model import DecodeError
        from vrag_ray.corpus.sandbox.sandbox import Sandbox

        if self._sandbox is None:
            self._sandbox = Sandbox(LIMITS)
        with tempfile.TemporaryDirectory(prefix="vrag-sent-") as folder:
            path = Path(folder) / _NAME
            path.write_bytes(data)
            try:
                return self._sandbox.render(
                    path, DocumentKind.IMAGE, Locator(page=1), dpi=DPI, box=None, max_pixels=MAX_PIXELS
                )
            except DecodeError as error:
                words = str(error).removeprefix(f"{_NAME}: ")
                raise InvalidError(f"{param}: {words}", param=param) from error
