"""Validation by the CRDs themselves, made strict: the API server drops an unknown field without a word."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema

from tests.deploy.rendering import Object, documents


def strict_schema(crd: Object) -> Object:
    """The schema of version v1 of a CRD, in which objects take no other properties than those named."""
    [version] = [candidate for candidate in crd["spec"]["versions"] if candidate["name"] == "v1"]
    schema: Object = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    # The API server knows what metadata is; the CRD says `object`.
    schema["properties"].pop("metadata", None)
    _tighten(schema)
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


def _tighten(schema: Any) -> None:
    if isinstance(schema, list):
        for part in schema:
            _tighten(part)
    if not isinstance(schema, dict):
        return
    if schema.get("x-kubernetes-int-or-string"):
        schema.pop("type", None)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema["additionalProperties"] = False
        # What has a default is filled in by the API server before it asks for it.
        required = [name for name in schema.get("required", []) if "default" not in properties.get(name, {})]
        schema.pop("required", None)
        if required:
            schema["required"] = required
        for part in properties.values():
            _tighten(part)
    for key, value in schema.items():
        if key != "properties":
            _tighten(value)


def problems(manifest: Object, schema: Object) -> Iterator[str]:
    for error in jsonschema.Draft7Validator(schema).iter_errors(manifest):
        yield f"{error.json_path}: {error.message}"


def crds_in(folder: Path) -> dict[str, Object]:
    """The CRDs of ``ray.io`` in the YAML files of a folder, by the kind that they define."""
    manifests = [document for path in sorted(folder.glob("*.yaml")) for document in documents(path)]
    return {
        manifest["spec"]["names"]["kind"]: manifest
        for manifest in manifests
        if manifest.get("kind") == "CustomResourceDefinition" and manifest["spec"]["group"] == "ray.io"
    }
