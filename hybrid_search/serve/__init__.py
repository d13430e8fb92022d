"""Answer queries over HTTP, and show them on a page: `hybrid-search serve`.

In: requests with the parameters of the Python functions as JSON. Out: their results as JSON, errors
as problem details (RFC 9457), and the inspector, a page in `static`.

Modules in reading order: `options` (address, token, limits), `server` (runs uvicorn), `app` (the
routes and what they share), `guard` (around every request: host, token, headers, counts), `limits`
(what a body may be, how many calls run at once, and for how long), `problems` (errors to answers),
`operations` (calls with JSON in and out, which are also tools for agents), `signatures` and
`openapi` (the description, made from the functions), `metrics`. It needs the extra ``serve``.

A new route goes into `app`, and what it takes and answers into `openapi.yaml`.
"""
