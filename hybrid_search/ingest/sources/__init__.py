"""Sources: where documents come from. Paths or an index in, `SourceLine`s out.

`choice` picks the source of a command; `files` reads JSONL and hands tables to `tables` (CSV, TSV;
`cell_limit` lets a cell be long) and `parquet` (an extra); `inbox` watches a folder; `rejected`
tries refused documents again; `server_index` reads the index of a server, with `server_filter` and
`server_reader`. A new kind of file gets a module here and a line in `files`; any other source a
field in `choice.SourceChoice`.
"""
