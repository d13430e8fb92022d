"""How a server is reached: the login, the trusted certificates and the waiting times.

A `Secret` does not appear in logs, tracebacks or pickles by accident.
"""

from __future__ import annotations

import base64
import logging
import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from hybrid_search.errors import UsageError

MASK = "***"
TIMEOUT = 60.0
"""Seconds to wait for one response, until all of it has come."""
MEGABYTE = 1_000_000
ANSWER_MEGABYTES = 256.0
"""The most megabytes of one response. The largest of a query are 500 passages a leg, with their
word codes: 30 MB.
"""
PATIENCE = 600.0
"""Seconds a writer waits for a server that takes nothing."""

_log = logging.getLogger(__name__)


class Secret:
    """A text that only `reveal` shows.

    Its ``repr``, ``str`` and format are ``***``, and it cannot be pickled.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself, for the request that needs it and nothing else."""
        return self._value

    def __repr__(self) -> str:
        return MASK

    def __format__(self, _: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled: each process reads its own from the environment")


@dataclass(frozen=True, slots=True)
class Access:
    """How a server is reached: at most one login, the trusted certificates, the waiting times.

    A login is a user with a password, an API key, a bearer token, or an AWS signature.
    """

    username: str | None = None
    password: Secret | None = None
    api_key: Secret | None = None
    token: Secret | None = None
    aws_region: str | None = None
    aws_service: str = "es"
    ca: Path | None = None
    verify: bool = True
    timeout: float = TIMEOUT
    answer_megabytes: float = ANSWER_MEGABYTES
    patience: float = PATIENCE

    @property
    def identity(self) -> str:
        """Name the login for messages, without its secret."""
        if self.username is not None:
            return f"user {self.username!r}"
        if self.api_key is not None:
            return "the API key"
        if self.token is not None:
            return "the token"
        return "the AWS credentials" if self.aws_region else "a request without login"

    def with_username(self, username: str | None) -> Access:
        """Return this access with the user that a URL names, if it names one."""
        if username is not None and self.username not in (None, username):
            raise UsageError(
                f"the URL names user {username!r} and HYBRID_SEARCH_USERNAME "
                f"{self.username!r}: leave one out"
            )
        access = replace(self, username=username or self.username)
        access.check()
        if access.password is not None and access.username is None:
            raise UsageError(
                "HYBRID_SEARCH_PASSWORD is set without a user: "
                "set HYBRID_SEARCH_USERNAME, or name the user in the URL"
            )
        return access

    def check(self) -> None:
        """Raise UsageError for two logins or half of one, but for a user that the URL may name."""
        if self.username is not None and ":" in self.username:
            raise UsageError(
                "a username cannot hold a colon: put the password into HYBRID_SEARCH_PASSWORD"
            )
        logins = {
            "HYBRID_SEARCH_USERNAME or _PASSWORD": self.username or self.password,
            "HYBRID_SEARCH_API_KEY": self.api_key,
            "HYBRID_SEARCH_TOKEN": self.token,
            "HYBRID_SEARCH_AWS_REGION": self.aws_region,
        }
        login_names = [name for name, value in logins.items() if value is not None]
        if len(login_names) > 1:
            raise UsageError(
                f"one login at a time: {' and '.join(login_names)} are set "
                "(a user in the URL counts): leave all but one out"
            )
        if self.username is not None and self.password is None:
            raise UsageError(
                f"user {self.username!r} has no password: "
                "set HYBRID_SEARCH_PASSWORD or HYBRID_SEARCH_PASSWORD_FILE"
            )

    def authorization(self) -> Secret | None:
        """Return the Authorization header; None without a login, or if AWS signs each request."""
        if self.username is not None and self.password is not None:
            return Secret("Basic " + _base64(f"{self.username}:{self.password.reveal()}"))
        if self.api_key is not None:
            key = self.api_key.reveal()  # as servers hand it out: "id:key", or that in base64
            return Secret("ApiKey " + (_base64(key) if ":" in key else key))
        return Secret(f"Bearer {self.token.reveal()}") if self.token is not None else None

    def scrub(self, text: str) -> str:
        """Return `text` with our secrets masked: servers and proxies sometimes echo a request."""
        secrets = [secret for secret in (self.password, self.api_key, self.token) if secret]
        if header := self.authorization():
            text = text.replace(header.reveal().partition(" ")[2], MASK)
        for secret in secrets:
            text = text.replace(secret.reveal(), MASK)
        return text


def refuse_secrets(url: str) -> None:
    """Raise UsageError, which does not repeat it, if `url` holds a password or another secret."""
    _, separator, remainder = url.partition("://")
    user, at_sign, _ = remainder.rpartition("@")
    has_password = at_sign and ":" in unquote(user)
    options = remainder.partition("?")[2].split("&")
    if separator and (has_password or any(map(_is_secret_option, options))):
        raise UsageError(
            "a URL must not hold a secret, since process lists and logs show it: put the password "
            "into HYBRID_SEARCH_PASSWORD, or into a file that HYBRID_SEARCH_PASSWORD_FILE names "
            "(likewise HYBRID_SEARCH_API_KEY, HYBRID_SEARCH_TOKEN), and change the exposed one"
        )


def _is_secret_option(option: str) -> bool:
    name = option.partition("=")[0].lower()
    return any(word in name for word in ("password", "token", "api_key", "secret"))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def is_ascii_word(text: str) -> bool:
    """Return whether a text is one word of printable ASCII, as headers need."""
    return text.isascii() and text.isprintable() and " " not in text


def read_private_text(option: str, file: Path) -> str:
    """Return the text of the file that an option or variable names; warn if others can read it.

    Raises:
        UsageError: If it cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(
            f"{option} names {str(file)!r}, which cannot be read: {reason}"
        ) from None  # the cause may hold the secret
    mode = file.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        _warn_readable(str(file), f"{mode:o}")
    return text


@cache
def _warn_readable(file: str, mode: str) -> None:
    """Warn once per file, as settings are read for every query."""
    _log.warning("the secret in %s can be read by others (mode %s): chmod 600 %s", file, mode, file)
