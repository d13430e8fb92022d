"""The model slice-bge-small-steady for hybrid_search: its folder is a model folder."""
