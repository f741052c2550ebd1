"""Trained models and their files."""
