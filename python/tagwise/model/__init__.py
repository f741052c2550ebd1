"""What a learner leaves behind, as one value and as one file."""
