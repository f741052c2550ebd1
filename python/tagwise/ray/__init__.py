"""Training on a cluster by Ray (`pip install 'tagwise[ray]'`): shards in actors, and the local engine's bits."""
