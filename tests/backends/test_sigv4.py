"""Requests to Amazon OpenSearch Service are signed as the published formula demands.

The formula is written out here again: a request in canonical form is hashed into a string, which is
signed by a key derived from the secret, the day, region and service.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.bulk import Action
from hybrid_search.backends.server.transport.connection import connect
from hybrid_search.credentials import Access, Secret
from hybrid_search.errors import UsageError
from tests.helpers.fake_server import HttpRequest, Reply, ScriptedServer, reply_in_turn

KEY, SECRET, SESSION = (
    "AKIDEXAMPLE",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "session-token-of-ours",
)  # AWS's own example
WHEN = "20150830T123600Z"
HOST = {"host": "example.amazonaws.com", "x-amz-date": WHEN}
FORM = {"content-type": "application/x-www-form-urlencoded", **HOST}

PUBLISHED = {
    "get-vanilla-query-order-key-case": (
        *("GET", "/?Param2=value2&Param1=value1", HOST, b""),
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "post-x-www-form-urlencoded": (
        *("POST", "/", FORM, b"Param1=value1"),
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
}
"""Cases of AWS's Signature Version 4 test suite.

Each has method, target, headers, body, and the signature for us-east-1 and ``service``.
"""


def _canonical_pair(pair: str) -> tuple[str, ...]:
    return tuple(quote(unquote(part), safe="-_.~") for part in pair.partition("=")[::2])


def canonical(method: str, target: str, headers: Mapping[str, str], body: bytes) -> str:
    """Return the canonical request.

    It has each part of the path encoded once more than it is sent, the query sorted, the headers,
    and the hash of the body.
    """
    path, _, query = target.partition("?")
    pairs = sorted(_canonical_pair(pair) for pair in query.split("&") if pair)
    lines = [
        method,
        quote(path, safe="/-_.~"),
        "&".join(f"{name}={value}" for name, value in pairs),
    ]
    lines += [f"{name}:{headers[name].strip()}" for name in sorted(headers)]
    return "\n".join([*lines, "", ";".join(sorted(headers)), hashlib.sha256(body).hexdigest()])


def signature(request: str, when: str, region: str, service: str) -> str:
    """Return the hexadecimal signature of a canonical request."""
    key = f"AWS4{SECRET}".encode()
    for part in (when[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    hashed = hashlib.sha256(request.encode()).hexdigest()
    return hmac.new(
        key,
        f"AWS4-HMAC-SHA256\n{when}\n{when[:8]}/{region}/{service}/aws4_request\n{hashed}".encode(),
        "sha256",
    ).hexdigest()


def is_accepted(request: HttpRequest, body: bytes | None = None) -> bool:
    """Return whether a server in eu-west-1 that knows the secret would accept this request.

    If `body` is given it takes the place of its own.
    """
    match = re.fullmatch(
        rf"AWS4-HMAC-SHA256 Credential={KEY}/(\d+)/eu-west-1/es/aws4_request, "
        rf"SignedHeaders=(\S+), Signature=([0-9a-f]+)",
        request.headers["authorization"],
    )
    assert match, request.headers["authorization"]
    day, names, signed = match.groups()
    when = request.headers["x-amz-date"]
    assert when[:8] == day
    assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names.split(";"))
    signed_headers = {name: request.headers[name] for name in names.split(";")}
    payload = request.body if body is None else body
    same = request.headers["x-amz-content-sha256"] == hashlib.sha256(payload).hexdigest()
    return same and hmac.compare_digest(
        signature(
            canonical(request.method, request.target, signed_headers, payload),
            when,
            "eu-west-1",
            "es",
        ),
        signed,
    )


@pytest.fixture
def _login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set credentials in the environment, without any from this machine."""
    nothing = tmp_path / "nothing"
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_CONFIG_FILE": str(nothing),
        "AWS_SHARED_CREDENTIALS_FILE": str(nothing),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("SESSION_TOKEN", "PROFILE", "DEFAULT_PROFILE", "WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", raising=False)


ACCESS = Access(aws_region="eu-west-1", timeout=5.0)


def send_requests(*requests: dict[str, Any], prefix: str = "") -> list[HttpRequest]:
    """Return these requests as they arrive."""
    with ScriptedServer(reply_in_turn(Reply())) as server:
        connection = connect(Address.parse(f"opensearch+{server.url}{prefix}"), ACCESS)
        for request in requests:
            connection.request(**request)
    return server.requests


@pytest.mark.parametrize("case", PUBLISHED)
def test_the_formula_gives_the_published_signatures(case: str) -> None:
    method, target, headers, body, expected = PUBLISHED[case]
    assert (
        signature(canonical(method, target, headers, body), WHEN, "us-east-1", "service")
        == expected
    )


@pytest.mark.usefixtures("_login")
@pytest.mark.parametrize(
    ("request_", "options"),
    [
        ("GET /", {}),
        ("HEAD /calls", {}),
        ("POST /calls/_search", {"body": {"query": {"match": {"text": "Rückgeld"}}}}),
        ("POST /_msearch", {"lines": [{"index": "calls"}, {"size": 1}], "params": {"max": 2}}),
        ("GET /calls/_search", {"params": {"filter_path": "hits.hits.*,took"}}),
        ("GET /calls/_search", {"params": {"typed_keys": True, "preference": "a b+c&d=é/~"}}),
        ("GET /calls-000001%2Ca/_doc/b%230%20%C3%A9", {}),
        ("GET /calls/_doc/a%2Fb", {}),
        ("PUT /%3Ccalls-%7Bnow%2Fd%7D%3E", {}),
        ("GET /calls", {"params": {"flat_settings": ""}}),
    ],
)
def test_what_arrives_is_accepted_and_with_another_body_it_is_not(
    request_: str, options: dict[str, Any]
) -> None:
    method, path = request_.split()
    (arrived,) = send_requests({"method": method, "path": path, **options})
    assert is_accepted(arrived)
    assert not is_accepted(arrived, arrived.body + b" ")


@pytest.mark.usefixtures("_login")
def test_a_prefix_of_the_path_is_signed_with_it() -> None:
    (arrived,) = send_requests({"method": "GET", "path": "/calls"}, prefix="/behind")
    assert arrived.target == "/behind/calls"
    assert is_accepted(arrived)


@pytest.mark.usefixtures("_login")
def test_bulk_requests_are_signed() -> None:
    with ScriptedServer(
        reply_in_turn(Reply(body={"items": [{"delete": {"_id": "a", "status": 200}}]}))
    ) as server:
        (outcome,) = connect(Address.parse(f"opensearch+{server.url}"), ACCESS).bulk(
            [Action("calls", "a")]
        )
    assert outcome.status == 200
    assert is_accepted(server.requests[0])


@pytest.mark.usefixtures("_login")
def test_the_token_of_a_session_is_sent_and_signed_and_is_in_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    caplog.set_level(logging.DEBUG)
    (arrived,) = send_requests({"method": "GET", "path": "/calls"})
    assert arrived.headers["x-amz-security-token"] == SESSION
    assert "x-amz-security-token" in arrived.headers["authorization"]
    assert is_accepted(arrived)
    assert caplog.records
    assert not any(
        secret in caplog.text
        for secret in (SESSION, SECRET, arrived.headers["authorization"].rpartition("=")[2])
    )


@pytest.mark.usefixtures("_login")
def test_credentials_are_those_of_the_profile_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"[ours]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "ours")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (arrived,) = send_requests({"method": "GET", "path": "/calls"})
    assert is_accepted(arrived)


@pytest.mark.usefixtures("_login")
def test_without_credentials_the_first_request_says_how_to_give_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    connection = connect(Address.parse("opensearch+http://127.0.0.1:1"), ACCESS)
    with pytest.raises(
        UsageError, match="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    ):
        connection.request("GET", "/")


WRONG = {
    "opensearch+http://localhost": (
        Access(aws_region="eu-west-1", aws_service="aoss"),
        "OpenSearch Serverless takes no document ids",
    ),
    "http://localhost": (
        Access(aws_region="eu-west-1", aws_service="s3"),
        "HYBRID_SEARCH_AWS_SERVICE is 's3': it must be es",
    ),
    "elasticsearch+http://localhost": (
        ACCESS,
        "is for Amazon OpenSearch Service: Elasticsearch takes a password",
    ),
    "opensearch+http://ada@localhost": (
        Access(password=Secret("x"), aws_region="eu-west-1"),
        "one login at a time",
    ),
}


@pytest.mark.parametrize("url", WRONG)
def test_what_cannot_be_signed_is_told_at_once(url: str) -> None:
    access, message = WRONG[url]
    with pytest.raises(UsageError, match=message):
        connect(Address.parse(url), access)
