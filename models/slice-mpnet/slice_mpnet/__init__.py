"""The model slice-mpnet for hybrid_search: its folder is a model folder."""
