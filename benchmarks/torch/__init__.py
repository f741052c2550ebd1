"""The CRF layer compared with pytorch-crf. Needs the packages torch and pytorch-crf."""

from __future__ import annotations

from ..harness import Context, Result


def run(context: Context) -> Result:
    """Run `benchmarks.torch.layer`, which imports torch."""
    from .layer import run

    return run(context)
