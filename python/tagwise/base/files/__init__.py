"""Readers of untrusted files, with size limits, checksums and schemas."""
