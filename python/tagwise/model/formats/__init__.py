"""Model files of CRFsuite, Wapiti and CRF++: checked when read, written byte for byte as these programs do."""
