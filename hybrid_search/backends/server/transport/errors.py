"""Translates failures of requests into errors that say who refused what, why, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hybrid_search.backends.server.transport.address import Address
from hybrid_search.credentials import Access
from hybrid_search.errors import AccessError, ServerError

MAX_REASON_LENGTH = 400
"""The most characters of a server's own words in a message: servers quote whole documents."""

MOST_CAUSES = 5
"""The most causes of an error in a message, each that of the one before."""

_KIND = re.compile(r"[a-z_]{1,100}")
_QUOTED_SOURCE = re.compile(r"\bsource\[.*", re.DOTALL)
"""The document in the description of a request, as in ``index {[calls][a], source[{...}]}``."""
UNUSABLE = 200
"""The status of an answer that came, but is too large or cannot be used: the next would be, too."""

LOGIN = {
    "user": "HYBRID_SEARCH_USERNAME and HYBRID_SEARCH_PASSWORD (or HYBRID_SEARCH_PASSWORD_FILE)",
    "the API key": "HYBRID_SEARCH_API_KEY (or HYBRID_SEARCH_API_KEY_FILE), "
    "and whether the key has expired",
    "the token": "HYBRID_SEARCH_TOKEN (or HYBRID_SEARCH_TOKEN_FILE), and whether it has expired",
    "the AWS credentials": "HYBRID_SEARCH_AWS_REGION, the credentials that AWS tools use here, "
    "and this machine's clock",
    "a request": "HYBRID_SEARCH_USERNAME and HYBRID_SEARCH_PASSWORD, HYBRID_SEARCH_API_KEY "
    "or HYBRID_SEARCH_TOKEN: none is set",
}
"""What to check when a login is refused, by the first words of `Access.identity`."""


class RequestError(Exception):
    """The failure of one try.

    `status` is 0 if no answer could be read, and `data` is its body, or why there is none.
    """

    def __init__(
        self,
        status: int,
        data: Any,
        retry_after: float | None = None,
        *,
        is_untrusted: bool = False,
    ) -> None:
        super().__init__(status)
        self.status, self.data = status, data
        self.retry_after, self.is_untrusted = retry_after, is_untrusted


def translate_failure(
    failure: RequestError, address: Address, access: Access, request: str
) -> ServerError:
    """Return the error for a failure of `request` (as in ``GET /calls``)."""
    why = access.scrub(reason(failure.data))
    if failure.is_untrusted:
        return AccessError(
            f"the certificate of {address} is not trusted: {why}. "
            "HYBRID_SEARCH_CA may name a file with the certificate of its authority",
            failure.status,
        )
    if failure.status == 401:
        remedy = next(
            remedy for prefix, remedy in LOGIN.items() if access.identity.startswith(prefix)
        )
        return AccessError(f"{address} refused {access.identity} (401): {why}. Check {remedy}", 401)
    if failure.status == 403 and not is_blocked(failure.data):
        return AccessError(
            f"{address} does not let {access.identity} do {request} (403): {why}. "
            "The documentation lists the privileges needed, under Servers",
            403,
        )
    if failure.status == UNUSABLE:
        return ServerError(
            f"{address} answered {request} with {why}: ask for less, or raise "
            "HYBRID_SEARCH_ANSWER_MEGABYTES",
            failure.status,
        )
    if failure.status == 0:
        return ServerError(
            f"no answer from {address} to {request}: {why}{_protocol_hint(why, address)}"
        )
    return ServerError(
        f"{address} answered {request} with {failure.status}: {why}",
        failure.status,
        failure.retry_after,
    )


def build_shape_error(error: Exception, address: Address, request: str) -> ServerError:
    """Return the error for an answer to `request` that no server of these two would give."""
    return ServerError(
        f"{address} answered {request} with what neither OpenSearch nor Elasticsearch answers "
        f"({error}): is a proxy or another service behind this URL? "
        "See what it is: hybrid-search doctor",
        UNUSABLE,
    )


def is_blocked(data: Any) -> bool:
    """Return whether the index refuses everybody, as on a full disk, and not this login."""
    return "block" in error_kind(data)


def error_kind(data: Any) -> str:
    """Return the type of an error, as in ``document_parsing_exception``, "" if it has none."""
    error = data.get("error") if isinstance(data, Mapping) else None
    kind = error.get("type") if isinstance(error, Mapping) else None
    return kind if isinstance(kind, str) and _KIND.fullmatch(kind) else ""


def reason(data: Any) -> str:
    """Return the server's own words for what is wrong, shortened.

    Some servers quote the document that they were too busy to take: that is left out.
    """
    try:
        words = "; ".join(dict.fromkeys(filter(None, _iterate_reasons(data)))) or "no reason given"
    except RecursionError:
        words = "its answer is nested too deeply"
    words = _QUOTED_SOURCE.sub("source[...]", words)
    return words if len(words) <= MAX_REASON_LENGTH else f"{words[:MAX_REASON_LENGTH]}..."


def _iterate_reasons(data: Any) -> Iterator[str]:
    """Yield type and reason of an error and of its causes, or the text of what is no JSON."""
    if not isinstance(data, Mapping):
        yield " ".join(re.sub(r"<[^>]*>", " ", str(data or "")).split())
        return
    error = data.get("error") or data.get("message") or data.get("Message") or data
    if not isinstance(error, Mapping):
        yield str(error)
        return
    root_causes, cause = error.get("root_cause"), error.get("caused_by")
    parts = [error, *(root_causes if isinstance(root_causes, list) else ())]
    for _ in range(MOST_CAUSES):
        parts.append(cause)
        cause = cause.get("caused_by") if isinstance(cause, Mapping) else None
    for part in parts:
        if isinstance(part, Mapping):
            yield ": ".join(str(part[key]) for key in ("type", "reason") if part.get(key))


def _protocol_hint(why: str, address: Address) -> str:
    """Return a hint if the two sides may not speak the same protocol."""
    if address.is_secure:
        return " (the server may speak http, not https)" if "WRONG_VERSION_NUMBER" in why else ""
    return " (the server may want https)" if "closed connection without response" in why else ""
