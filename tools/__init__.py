"""Tools of the workshop: real servers, the README's picture, and the counts of ``make house``.

``servers/`` starts real servers to test on or to try, ``picture`` draws an answer as SVG, and
``house/`` counts names, width and density.
"""
