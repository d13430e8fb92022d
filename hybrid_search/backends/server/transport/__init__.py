"""The connection to a cluster: requests and bulk writing, over opensearch-py.

In: a URL, a login, and requests as Python objects. Out: decoded answers, outcomes of bulk actions,
and errors that say who refused what and what to do. In reading order:

* `address` parses the URL.
* `client` sends requests within limits of time and size.
* `shape` checks what an answer must hold.
* `errors` turns failures into messages; `retry` is the loop that tries again, with its policy.
* `bulk` cuts actions into requests, and tells the outcome of each.
* `connection` is the `Server`, which puts them together. For writers it waits for minutes.
* `sigv4` signs requests for AWS.
"""
