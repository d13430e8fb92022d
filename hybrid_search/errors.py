"""All errors of this project. Catch `HybridSearchError` for any of them.

    HybridSearchError
    ├── UsageError            an argument is outside what the call takes (also a ValueError)
    ├── InputError            a document cannot be indexed; carries the reason that goes into the
      rejects file
    ├── ModelError            a model folder is incomplete, damaged, or not the one that wrote the
      index
    ├── DeviceError           the device that was asked for is not the one that runs
    ├── MissingExtraError     an optional dependency is not installed; names the extra
    ├── WorkerError           a worker of a cluster failed, or the cluster cannot be reached
    └── IndexStoreError       the index cannot be read or written
        ├── IndexMissingError     there is no index of that name
        ├── IndexBusyError        another process is writing it
        └── ServerError           a server refused a request, or could not be reached; carries the
          HTTP status
            └── AccessError       it refused the login, or its certificate is not trusted

A message carries the two values that disagree, and the remedy.
"""

from __future__ import annotations


class HybridSearchError(Exception):
    """Root of all errors raised on purpose by this project."""


class UsageError(HybridSearchError, ValueError):
    """An argument is outside what the call takes."""


class InputError(HybridSearchError):
    """A document cannot be indexed, for the reason given; the documents around it can."""


class ModelError(HybridSearchError):
    """A model folder is incomplete or damaged, or its vectors cannot be compared with those of the
    index.
    """


class DeviceError(HybridSearchError):
    """The device that was asked for is not the one that runs."""


class MissingExtraError(HybridSearchError, ImportError):
    """An optional dependency is not installed."""


class WorkerError(HybridSearchError):
    """A worker of a cluster failed, or the cluster cannot be reached."""


class IndexStoreError(HybridSearchError):
    """The index cannot be read or written."""


class IndexMissingError(IndexStoreError):
    """There is no index of that name."""


class IndexBusyError(IndexStoreError):
    """Another process is writing the index."""


class ServerError(IndexStoreError):
    """A server refused a request, or could not be reached.

    `status` is its HTTP status, 0 where there was no answer.

    `retry_after` is how many seconds the server asked to be left alone for, None where it did not.
    """

    def __init__(self, message: str, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class AccessError(ServerError):
    """The server refused the login or what it may do (401, 403), or its certificate is not trusted
    (0).
    """
