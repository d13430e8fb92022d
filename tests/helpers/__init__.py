"""Helpers that several tests share: encoders, servers, processes and awkward texts.

Encoders: `tiny_encoder` (a fixed vector per word, fast) and `table_encoder` (vectors given by the
test). Servers: `fake_server` (scripted replies), `fault_proxy` (faults in front of a real server),
`live_servers` (the servers of HYBRID_SEARCH_TEST_URLS), `server_index` (an index on one of them,
read without the product) and `server_scheduling` (one worker for each server). Processes: `cli` and
`ingest_process`. Texts: `offset_corpus`.
"""
