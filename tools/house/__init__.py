"""Count how the code reads: names, width, density and size, for every top folder.

In: the Python files of a checkout. Out: a table (`make house`) and, from
`tests/house/test_house.py`, a failure that names file, line and rule.

* `names.py` lists the names that say nothing, and tells a function that is no verb.
* `syntax.py` counts one parsed file: bindings, operations, comprehensions, bodies, docstrings.
* `report.py` sums the counts of a folder and holds the limits.

A new rule is a function in `syntax.py`, a limit and an entry of `RULES` in `report.py`, and, if the
table should show it, a field of `Counts`.
"""
