"""Learners over encoded shards: batch objectives, online learners, dual ascent."""
