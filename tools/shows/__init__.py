"""What the documentation shows of everyday use: a notebook and a shell session, with what they print."""
