"""The model slice-bge-small for hybrid_search: its folder is a model folder."""
