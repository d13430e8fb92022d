"""The model slice-multilingual for hybrid_search: its folder is a model folder."""
