"""The systems of the papers' tables, one small file each; `papers.systems.registry` lists them."""
