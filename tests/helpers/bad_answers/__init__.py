"""The catalogue of bad answers: what a server, a proxy or a stranger on the port may send.

A kind takes the exchange of a request and its right answer, and returns the reply to send instead.
`whole_answers`, `broken_http` and `changed_values` are bad as the answer to any request,
`wrong_fields` are right but for one field. Tests try them in `tests/backends/test_bad_answers.py`,
and the campaign in `benchmarks/faults/answers.py`.
"""

from __future__ import annotations

from tests.helpers.bad_answers import broken_http, changed_values, whole_answers, wrong_fields
from tests.helpers.bad_answers.exchange import BadAnswer

ENDLESS = frozenset(broken_http.ENDLESS)
"""Kinds that only a limit of the client ends: each takes a second or more."""

ANYWHERE: dict[str, BadAnswer] = {
    **whole_answers.WHOLE,
    **whole_answers.STATUSES,
    **broken_http.BROKEN,
    **broken_http.ENDLESS,
    **changed_values.CHANGED,
}
"""Bad as an answer to any request."""

HARMLESS = broken_http.HARMLESS
"""Odd, but the right answer: understood, or an error."""


def find_kind(stage: str, name: str) -> BadAnswer:
    """Return the kind of this name, for the requests of a stage."""
    return {**ANYWHERE, **HARMLESS, **wrong_fields.IN_STAGE.get(stage, {})}[name]


def list_kinds(stage: str) -> list[str]:
    """Return the names of all kinds for a stage."""
    return [*ANYWHERE, *HARMLESS, *wrong_fields.IN_STAGE.get(stage, {})]
