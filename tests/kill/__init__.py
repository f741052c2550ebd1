"""What a kill at any moment leaves behind."""
