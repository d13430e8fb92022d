"""Turn errors into problem details (RFC 9457) that tell nothing of this machine.

The class of an error decides the status. The messages of errors that the caller can mend are
passed on; the others, which may name files and servers, are logged.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response

from hybrid_search.errors import (
    AccessError,
    DamagedIndexError,
    DocumentMissingError,
    HybridSearchError,
    IndexBusyError,
    IndexMissingError,
    InputError,
    ModelError,
    ServerError,
    UsageError,
)

PROBLEM_TYPE = "application/problem+json"
RETRY_SECONDS = 1
"""After which a caller that was turned away may ask again."""

RETURNING = {429, 503}
"""The statuses of transient problems."""

_log = logging.getLogger(__name__)

_ADDRESS = re.compile(r"[\w+.-]+://[^\s'\"),;]*")
"""A URL in a message: it may name the server that holds the indexes."""


ANSWERS: dict[type[HybridSearchError], tuple[int, str | None]] = {
    UsageError: (422, None),
    InputError: (422, None),
    DocumentMissingError: (404, None),
    IndexMissingError: (404, "there is no index of this name: GET /v1/indexes lists all"),
    ModelError: (
        409,
        "the index was written with a model that this service lacks: its log says which",
    ),
    DamagedIndexError: (500, "the index is damaged: hybrid-search verify says what to do"),
    IndexBusyError: (503, "the index is being written: ask again"),
    AccessError: (502, "the store of the indexes refused the login of this service"),
    ServerError: (502, "the store of the indexes did not answer as it should"),
    HybridSearchError: (500, "the service cannot answer: its log says why"),
}
"""The answer to each class of errors; any other class has that of its base."""


class Problem(Exception):  # noqa: N818 # RFC 9457 calls it so
    """A request that cannot be answered: the HTTP status and one sentence for its sender.

    `error` is the class of the error, if it is one of this project.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        error: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error = status, detail, error
        self.headers = dict(headers or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the members of the problem details."""
        members = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return members | ({"error": self.error} if self.error else {})


def explain_error(error: HybridSearchError, hidden: str) -> Problem:
    """Return the problem that an error is; one that the caller cannot mend is logged.

    Neither URLs nor `hidden`, where the indexes are, are in the answer.
    """
    kind = next(kind for kind in type(error).__mro__ if kind in ANSWERS)
    status, detail = ANSWERS[kind]
    if isinstance(error, ServerError) and error.status in (0, 429, 503):
        status = 503  # it is away or busy, which passes
    if status == 409 or status >= 500:
        _log.error("a request failed: %s", error)
    message = str(error).replace(hidden, "(place)") if hidden else str(error)
    shown = detail or _ADDRESS.sub("(address)", message)
    return Problem(status, shown, type(error).__name__)


def dump_json(value: Mapping[str, Any]) -> bytes:
    """Return an answer as JSON."""
    # mappings and sequences of other classes as types that orjson knows
    return orjson.dumps(value, default=lambda it: dict(it) if isinstance(it, Mapping) else list(it))


def build_response(problem: Problem) -> Response:
    """Return the response that tells a problem."""
    headers = dict(problem.headers)
    if problem.status in RETURNING:
        headers["Retry-After"] = str(RETRY_SECONDS)
    return Response(orjson.dumps(problem.to_dict()), problem.status, headers, PROBLEM_TYPE)
