"""Model files of other programs: CRFsuite, Wapiti, CRF++; read with every check, written byte for byte as they do."""
