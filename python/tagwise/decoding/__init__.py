"""From scores to labels: best paths, lists of paths, probabilities, and how sure a tagger is."""
