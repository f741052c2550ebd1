"""Tests of the web: guards, limits, the server. What needs a package of `tagwise[web]` skips where it is missing."""
