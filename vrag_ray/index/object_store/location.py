"""What the URI of an object store says, in the forms of ``pyarrow.fs`` and of Lance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from vrag_ray.types import VragError


@dataclass(frozen=True, slots=True)
class Location:
    """``base`` is the URI without options: ``s3://bucket/folder``; ``options`` are those behind its question mark."""

    base: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, uri: str) -> Location:
        """Raises VragError for a URI with a key in it: keys come from the environment, a URI is shown and stored."""
        parts = urlsplit(uri)
        if "@" in parts.netloc:
            raise VragError(
                f"the URI of {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} holds a key: set it in the "
                "environment instead (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS)"
            )
        return cls(f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/"), dict(parse_qsl(parts.query)))

    @property
    def lance_options(self) -> dict[str, str]:
        """``storage_options`` of Lance for the options that ``pyarrow.fs`` takes in an S3 URI."""
        options: dict[str, str] = {}
        if region := self.options.get("region"):
            options["region"] = region
        if endpoint := self.options.get("endpoint_override"):
            scheme = self.options.get("scheme", "https")
            options["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
            options["virtual_hosted_style_request"] = "false"
            if options["endpoint"].startswith("http://"):
                options["allow_http"] = "true"
        return options
