"""Other people's conventions."""
