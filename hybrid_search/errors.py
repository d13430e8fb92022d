"""All errors of this project. Catch `HybridSearchError` for any of them.

    HybridSearchError
    ├── UsageError                an argument is outside what the call takes (also a ValueError)
    ├── InputError                a document cannot be indexed; the message goes to the rejects file
    ├── ModelError                a model is missing, incomplete, damaged, or not the index's
    ├── DeviceError               the requested device is not the one that runs
    ├── MissingExtraError         an optional dependency is not installed; names the extra
    ├── WorkerError               a cluster worker failed, or the cluster cannot be reached
    └── IndexStoreError           the index cannot be read or written
        ├── IndexMissingError     no index has that name
        ├── DocumentMissingError  no document of the index has that id
        ├── IndexBusyError        another process is writing the index
        ├── DamagedIndexError     what is stored is damaged; the message says how it is mended
        └── ServerError           a server refused or could not be reached; has the HTTP status
            └── AccessError       the login was refused, or the certificate is not trusted

A message carries the two values that disagree, and the remedy.
"""

from __future__ import annotations

import re

SHOWN = 80
"""Characters of a value that a message shows."""


class HybridSearchError(Exception):
    """Root of all errors raised on purpose by this project."""


class UsageError(HybridSearchError, ValueError):
    """An argument is outside what the call takes."""


class InputError(HybridSearchError):
    """A document cannot be indexed, for the reason in the message; its neighbours can.

    The message has no content of the document, so that it may be logged and sent to a server, and
    equal faults have equal messages.

    Attributes:
        detail: What was found, and where. It may quote the document, and goes only to the rejects
            file.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class ModelError(HybridSearchError):
    """A model is missing, incomplete or damaged, or is not the model that wrote the index."""


class DeviceError(HybridSearchError):
    """The requested device is not the one that runs."""


class MissingExtraError(HybridSearchError, ImportError):
    """An optional dependency is not installed."""


class WorkerError(HybridSearchError):
    """A cluster worker failed, or the cluster cannot be reached."""


class IndexStoreError(HybridSearchError):
    """The index cannot be read or written."""


class IndexMissingError(IndexStoreError):
    """No index has that name."""


class DocumentMissingError(IndexStoreError):
    """No document of the index has that id."""


class IndexBusyError(IndexStoreError):
    """Another process is writing the index."""


class DamagedIndexError(IndexStoreError):
    """What an index stores is damaged; the message says how it is mended. It can be deleted."""


class ServerError(IndexStoreError):
    """A server refused a request, or could not be reached.

    Attributes:
        status: The HTTP status of the response, 0 if there was none.
        retry_after: Seconds to wait before the next request, None if the server did not say.
    """

    def __init__(self, message: str, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class AccessError(ServerError):
    """The server refused the login (401) or the action (403), or its certificate is not trusted."""


def show_value(value: object) -> str:
    """Return the start of a value's repr for a message, or its type if it cannot be written out."""
    try:
        text = repr(value)
    except Exception:
        return f"of type {type(value).__name__}"
    return shorten(text)


def shorten(text: str) -> str:
    """Return the start of a text for a message."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


_PLAIN_WORDS = (
    (r"^Value error, ", ""),
    (r"^Field required", "is missing"),
    (r"^Extra inputs are not permitted", "is not a known key"),
    (r"^(?:Input|List|Tuple|String|Value) should ", "must "),
    (r"a valid integer(?:, .*)?", "a whole number"),
    (r"a valid string", "a text"),
    (r"a valid boolean.*", "true or false"),
    (r"a valid (?:dictionary|mapping|object).*", "an object"),
    (r"a valid tuple", "a list"),
    (r"a valid (\w+)(?:, unable .*)?", r"a \1"),
    (r"greater than or equal to", "at least"),
    (r"less than or equal to", "at most"),
    (r"greater than", "more than"),
)
"""Patterns of pydantic's messages, in this order, with plain words for each."""


def put_plainly(message: str) -> str:
    """Return a message of pydantic in plain words, which go on behind the name of the value."""
    for pattern, words in _PLAIN_WORDS:
        message = re.sub(pattern, words, message)
    return message
