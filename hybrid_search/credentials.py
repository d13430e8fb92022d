"""How a server is reached: who we are to it, whose certificates we trust, how long we wait.

No secret shows itself by accident.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from hybrid_search.errors import UsageError

MASK = "***"
TIMEOUT = 60.0
"""Seconds to wait for one answer."""
PATIENCE = 600.0
"""Seconds for which a writer waits for a server that takes nothing."""


class Secret:
    """A text that only `reveal` gives: its ``repr``, ``str`` and format are ``***``, and it is not
    pickled.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself. For the request that needs it, and nothing else."""
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
    """One login at most (a user with a password, an API key, a bearer token, or a signature by
    AWS), and how the server is known and awaited.
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
    patience: float = PATIENCE

    @property
    def identity(self) -> str:
        """Who we are to the server, safe to show."""
        if self.username is not None:
            return f"user {self.username!r}"
        credentials = {
            "the API key": self.api_key,
            "the token": self.token,
            "the AWS credentials": self.aws_region,
        }
        return next(
            (name for name, credential in credentials.items() if credential),
            "a request without login",
        )

    def with_username(self, username: str | None) -> Access:
        """This access for the user that a URL names, if it names one.

        Raises UsageError where that is not one whole login.
        """
        if username is not None and self.username not in (None, username):
            raise UsageError(
                f"the URL names user {username!r} and HYBRID_SEARCH_USERNAME {self.username!r}: leave one out"
            )
        access = replace(self, username=username or self.username)
        access.check()
        if access.password is not None and access.username is None:
            raise UsageError(
                "HYBRID_SEARCH_PASSWORD is set, and neither HYBRID_SEARCH_USERNAME nor the URL says whose it is"
            )
        return access

    def check(self) -> None:
        """Raise UsageError for two logins at once, and for a user without a password.

        The URL may still name the user of a password.
        """
        if self.username is not None and ":" in self.username:
            raise UsageError(
                "a username holds no colon: the password belongs into HYBRID_SEARCH_PASSWORD"
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
                f"one login at a time: {' and '.join(login_names)} are set (a user in the URL counts): leave all but one out"
            )
        if self.username is not None and self.password is None:
            raise UsageError(
                f"there is a user, {self.username!r}, but no password: set HYBRID_SEARCH_PASSWORD or HYBRID_SEARCH_PASSWORD_FILE"
            )

    def authorization(self) -> Secret | None:
        """The value of the Authorization header; None where there is no login or AWS signs each
        request.
        """
        if self.username is not None and self.password is not None:
            return Secret("Basic " + _base64(f"{self.username}:{self.password.reveal()}"))
        if self.api_key is not None:
            key = self.api_key.reveal()  # as servers hand it out: "id:key", or that in base64
            return Secret("ApiKey " + (_base64(key) if ":" in key else key))
        return Secret(f"Bearer {self.token.reveal()}") if self.token is not None else None

    def scrub(self, text: str) -> str:
        """`text` without our secrets: servers and proxies sometimes say what they were sent."""
        header = self.authorization()
        secrets = [
            credential.reveal()
            for credential in (self.password, self.api_key, self.token)
            if credential is not None
        ]
        for secret in ([header.reveal().partition(" ")[2]] if header else []) + secrets:
            text = text.replace(secret, MASK)
        return text


def refuse_secrets(url: str) -> None:
    """Raise UsageError if `url` holds a password or another secret. The message does not repeat it."""
    _, separator, remainder = url.partition("://")
    user, at_sign, _ = remainder.rpartition("@")
    options = [
        option.partition("=")[0].lower() for option in remainder.partition("?")[2].split("&")
    ]
    if separator and (
        (at_sign and ":" in unquote(user))
        or any(
            word in option
            for option in options
            for word in ("password", "token", "api_key", "secret")
        )
    ):
        raise UsageError(
            "a URL may hold no secret, since lists of processes and logs show it: put the password into HYBRID_SEARCH_PASSWORD, or into a file "
            "that HYBRID_SEARCH_PASSWORD_FILE names (HYBRID_SEARCH_API_KEY, HYBRID_SEARCH_TOKEN), and change the one that was shown"
        )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
