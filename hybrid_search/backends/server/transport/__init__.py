"""The connection to a cluster: requests and bulk writing, over either client library.

In: a URL, a login, and requests as Python objects. Out: decoded answers, outcomes of bulk actions,
and errors that say who refused what and what to do. In reading order:

* `base` is the contract, `address` parses the URL, and `connect` picks the engine.
* `connection` is a `Server` over a client library: `opensearch` or `elasticsearch`.
* `shape` checks what an answer must hold, `answers` has the shapes of this package, and `limits`
  are those of time and size.
* `errors` turns failures into messages; `retry` is the loop that tries again, with its policy.
* `patience` is a `Server` for writers, which waits for minutes.
* `sigv4` signs requests for AWS, `cbor` decodes answers, `plugins` lists what a cluster has.

A client library is imported in one module only. A new engine is one more such module, a line in
`connect` and in `base.Engine`.
"""
