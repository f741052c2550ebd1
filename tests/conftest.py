"""One profile for all property tests: no deadline (machines are shared), few examples (the laws are many).

Threads beyond the machine's cores are lent where a test asks for them: results must not depend on their number.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("tagwise", max_examples=40, deadline=None)
settings.load_profile("tagwise")
os.environ.setdefault("TAGWISE_MOST_THREADS", "8")
# Before NumPy is imported: products of small matrices take twice the time by two threads of BLAS.
for _library in ("OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
