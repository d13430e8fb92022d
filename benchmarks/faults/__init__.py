"""The fault campaign: what breaks if files, file systems, servers and arguments are bad.

``python -m benchmarks.faults`` tries thousands of faults, each in a process that may die of it, and
holds the product to six rules (`trial.RULES`). The counts go to ``results/faults``.

Modules in reading order: `trial` (what is tried, and what comes of it), `commands` (the product, as
users run it), `scene` (sound indexes and models, of which each trial damages a copy), `remedies`
(doing what a message says), `examination` (the rules), the families `damage`, `access`, `answers`
(whose catalogue is `tests.helpers.bad_answers`) and `parameters`, then `pool` and `report`.

A new kind of bad answer goes into that catalogue, a new family into `families.FAMILIES`.
"""
