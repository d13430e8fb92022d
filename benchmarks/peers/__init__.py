"""What ships here beside other hybrid searches: the same passages and queries, in one run.

``python -m benchmarks.peers`` writes a result for each peer and set. Modules in reading order:
`types` (passages, answers, and what a program has to offer), `programs` (what a user writes, a file
for each library), `registry` (the peers), `corpus` (passages and judgements of a set), `measure`,
`offline` (nothing leaves the machine), `stores`, `user_lines`, `bandwidth`, `report` (the tables).
"""
