"""The linear CRF on a GPU: objective, scorer, optimiser vectors."""
