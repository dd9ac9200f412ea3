"""Files inside documents: which of them become documents of their own, and the notices of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.formats.source import Attachment, OpenContainer
from vrag_ray.corpus.model import DecodeError, Probe
from vrag_ray.corpus.sniff import sniff_bytes
from vrag_ray.types import MetaValue

MOST_ATTACHMENTS = 200
MOST_BYTES = 256 * 2**20
"""Of one attachment; a configuration with few pixels allows less, for the pipe to the parent is bounded by them."""
BYTES_PER_PIXEL = 4
NAMES_IN_NOTICE = 3
ATTACHMENTS = "attachments"
"""The metadata name under which a document counts the files in it that became documents."""


def readable(source: OpenContainer, limits: DecodeLimits) -> Iterator[Attachment]:
    """The attachments that are of a kind that is read, the first ``MOST_ATTACHMENTS`` of them."""
    count = 0
    for attachment in source.attachments():
        if not refusal(attachment, limits):
            yield attachment
            count += 1
            if count == MOST_ATTACHMENTS:
                return


def with_attachments(probe: Probe, source: OpenContainer, limits: DecodeLimits) -> Probe:
    """``probe`` with the number of attachments that are read, and a notice for those that are not."""
    taken, left_out = 0, list[str]()
    for attachment in source.attachments():
        if reason := refusal(attachment, limits):
            left_out.append(f"{attachment.name} ({reason})")
        elif taken < MOST_ATTACHMENTS:
            taken += 1
        else:
            left_out.append(f"{attachment.name} (it has more than {MOST_ATTACHMENTS} attachments)")
    notices = probe.notices
    if left_out:
        more = len(left_out) - NAMES_IN_NOTICE
        names = ", ".join(left_out[:NAMES_IN_NOTICE]) + (f" and {more} more" if more > 0 else "")
        notices = (*notices, f"attachments left out: {names}")
    meta: dict[str, MetaValue] = {**probe.meta, **({ATTACHMENTS: taken} if taken else {})}
    return replace(probe, meta=meta, notices=notices)


def refusal(attachment: Attachment, limits: DecodeLimits) -> str:
    """Why an attachment is left out, in a few words; "" where it is read."""
    if not attachment.data:
        return "empty, or no file"
    if len(attachment.data) > min(MOST_BYTES, limits.max_pixels * BYTES_PER_PIXEL):
        return f"{len(attachment.data) >> 20} MB, too large"
    try:
        sniff_bytes(attachment.data, attachment.name)
    except DecodeError as error:
        return str(error).partition(":")[0][:80]
    return ""
