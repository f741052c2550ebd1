"""Tests of the guards, limits and servers. Tests that need `tagwise[web]` are skipped if it is not installed."""
