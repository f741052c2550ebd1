"""One profile for all property tests: no deadline (machines are shared), few examples (the laws are many)."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("tagwise", max_examples=40, deadline=None)
settings.load_profile("tagwise")
