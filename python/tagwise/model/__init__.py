"""Trained models and their files."""

from tagwise.model.model import Model

__all__ = ["Model"]
