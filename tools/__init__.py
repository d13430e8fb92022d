"""Tools of the workshop: real servers, the picture of the README, and the counts of ``make house``.

``servers/`` starts real servers to test on or to try, ``picture`` draws an answer as SVG, ``house/``
counts names, width and density.
"""
