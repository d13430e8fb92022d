"""A static page of what was mined, for users without a server: one HTML file, no script.

In: a file of matches in JSON lines. Out: a page with counts, plots and the words marked.

Modules in reading order: `counts` (the numbers of the page), `page` (lays out its plots and renders
``page.html.jinja``), `writer` (reads the matches and their sentences, and writes the file).
"""
