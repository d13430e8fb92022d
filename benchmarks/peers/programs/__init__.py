"""One file for each library: what its user writes, as its own documentation recommends.

`benchmarks.peers.user_lines` counts their lines. Whoever can write one of them better is welcome.
"""
