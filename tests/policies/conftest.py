"""Property tests here measure promises, not speed: a busy machine must not fail them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")
