"""Sources of documents: files, folders, streams or an index, read as `SourceLine`s.

`files` finds files, opens them with `streams` in the
detected encoding, and reads them as the kind detected by `recognition`: `json_texts`, `csv_tables`,
`arrow_tables` (an extra), or one of `formats`. `python_objects` reads documents from Python.
`records` has the type that all of them yield and makes documents of it according to `read_options`,
`tables` checks for repeated ids, `turn_rows` groups rows into calls. `inbox` watches a folder;
`server_index` reads the index of a server. A new source that is not a file gets a field in
`hybrid_search.ingest.run.SourceChoice`.
"""
