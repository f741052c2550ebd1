"""Tests of the web: guards, limits, the server. Those that need a package of `tagwise[web]` skip where it is missing."""
