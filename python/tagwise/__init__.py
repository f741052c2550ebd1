"""Discriminative label-sequence learning."""
