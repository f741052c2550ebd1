"""``python -m tagwise`` is ``tagwise``."""

from tagwise.cli import main

main()
