"""Signs requests for Amazon OpenSearch Service (Signature Version 4).

The credentials are found as AWS tools find them. No other module imports botocore.
"""

from __future__ import annotations

import logging
import threading
from importlib.util import find_spec
from typing import Any

from hybrid_search.credentials import Access
from hybrid_search.errors import MissingExtraError, UsageError
from hybrid_search.system import install_command

SECRET_LOGGERS = ("auth", "credentials", "endpoint", "parsers", "utils")
"""Modules of botocore whose DEBUG lines contain session tokens, or answers with keys."""


class Signer:
    """Signs requests; credentials are looked up at the first: that may ask a metadata service."""

    def __init__(self, region: str, service: str) -> None:
        self._region = region
        self._service = service
        self._lock = threading.Lock()
        self._credentials: Any = None

    def __call__(self, method: str, url: str, body: bytes | None) -> dict[str, str]:
        """Return headers that sign this request; raises UsageError without credentials."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        with self._lock:
            self._credentials = self._credentials or _find_credentials()
            # a snapshot; botocore renews the credentials before they expire
            credentials = self._credentials.get_frozen_credentials()
        signer = SigV4Auth(credentials, self._service, self._region)
        request = AWSRequest(method, url, {}, body)
        request.headers["X-Amz-Content-SHA256"] = signer.payload(request)
        signer.add_auth(request)
        return dict(request.headers.items())


def create_signer(access: Access) -> Signer | None:
    """Return what signs requests with this access; None if AWS has nothing to do with it.

    Raises:
        UsageError: If its service cannot hold an index of this project.
        MissingExtraError: If botocore is not installed.
    """
    if access.aws_region is None:
        return None
    if access.aws_service == "aoss":
        raise UsageError(
            "HYBRID_SEARCH_AWS_SERVICE is 'aoss': Amazon OpenSearch Serverless takes no document "
            "ids from its clients and has no refresh, which replacing a document needs. "
            "Use a managed domain (es)"
        )
    if access.aws_service != "es":
        raise UsageError(f"HYBRID_SEARCH_AWS_SERVICE is {access.aws_service!r}: it must be es")
    if find_spec("botocore") is None:
        raise MissingExtraError(
            f"signing requests for AWS needs botocore: {install_command('aws')}"
        )
    return Signer(access.aws_region, access.aws_service)


def _find_credentials() -> Any:
    from botocore.session import get_session

    for name in SECRET_LOGGERS:
        logging.getLogger(f"botocore.{name}").addFilter(_is_above_debug)
    credentials = get_session().get_credentials()
    if credentials is None:
        raise UsageError(
            "HYBRID_SEARCH_AWS_REGION is set, but there are no AWS credentials to sign requests: "
            "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role "
            "is attached"
        )
    return credentials


def _is_above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG
