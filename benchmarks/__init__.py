"""Measurements: quality and speed.

Never shipped. Results are JSON in ``results/``, named by what was measured and the commit.
"""
