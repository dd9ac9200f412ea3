"""Embedders of legs, loaded once for all collections and versions that are served with them."""

from __future__ import annotations

import threading
from weakref import WeakValueDictionary

from vrag_ray.config import EmbedderConfig, SpaceConfig
from vrag_ray.index.search.vector_leg import VectorLeg, space_leg, text_leg
from vrag_ray.index.storage.spaces import SpaceRecord

SpaceKey = tuple[str, str, bool, SpaceConfig]


class LegLoader:
    """A leg of a space is shared as long as a served collection has it, and its model is let go of after that.

    Thread-safe; what is being loaded by one caller is waited for by the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[EmbedderConfig, tuple[VectorLeg | None, str]] = {}
        self._spaces: WeakValueDictionary[SpaceKey, VectorLeg] = WeakValueDictionary()

    def text(self, config: EmbedderConfig) -> tuple[VectorLeg | None, str]:
        """As ``text_leg``."""
        with self._lock:
            if config not in self._texts:
                self._texts[config] = text_leg(config)
            return self._texts[config]

    def space(self, record: SpaceRecord, config: SpaceConfig) -> VectorLeg:
        """As ``space_leg``."""
        key = (record.name, record.embedder_id, record.multi_vector, config)
        with self._lock:
            leg = self._spaces.get(key)
            if leg is None:
                leg = space_leg(record, config)
                self._spaces[key] = leg
            return leg
