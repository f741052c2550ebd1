"""Taggers over HTTP: an ASGI application, request batching, reloading of model files, metrics and OpenAPI."""
