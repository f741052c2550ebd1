"""Small models of every kind as this library once wrote them, and what they predict."""
