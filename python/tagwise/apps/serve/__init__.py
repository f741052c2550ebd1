"""Trained taggers behind HTTP: `tagwise serve`. Plain ASGI on the guards and limits of `tagwise.apps.web`.

`service` is the application, `work` what one batch of requests becomes, `batching` who gathers it, `shelf` the models
and how a replaced file takes their place, `shapes` what a request may say, `openapi` the same for people and programs.
"""
