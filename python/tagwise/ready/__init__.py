"""Taggers that are ready for use: what there is (`taggers`), and one of them by its name (`pretrained`)."""
