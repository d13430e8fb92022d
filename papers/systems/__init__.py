"""The systems of the papers' tables: one small file each, all listed in `papers.systems.registry`."""
