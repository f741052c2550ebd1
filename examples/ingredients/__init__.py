"""Ingredients."""
