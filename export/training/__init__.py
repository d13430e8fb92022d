"""Train a SLICE encoder: recipes and triples in, a folder of weights out.

``python -m export.train`` is the command.

A step reads as ``data`` and ``compose`` (which texts, which spans) -> ``batch`` -> ``model`` (token
vectors) and ``teacher`` -> ``objective`` (``losses``); ``loop`` repeats it, and ``checkpoint``
makes it survive an interruption. A new loss is a function of ``losses``, a weight in ``recipe`` and
a call in ``objective``.
"""
