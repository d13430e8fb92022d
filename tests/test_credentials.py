"""Logins and other server settings: read from the environment, one at a time, never shown."""

from __future__ import annotations

import copy
import dataclasses
import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

import hybrid_search
from hybrid_search.config import settings
from hybrid_search.credentials import Access, Secret, refuse_secrets
from hybrid_search.errors import UsageError

HUSH = "hunter2-Zürich"


def format_in_all_ways(value: object) -> list[str]:
    return [
        repr(value),
        str(value),
        f"{value}",
        f"{value!r:>40}",
        "%s" % value,  # noqa: UP031 # all ways to print
        "{0}".format(value),  # noqa: UP030, UP032
    ]


def set_variables(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"HYBRID_SEARCH_{name}", value)


@pytest.mark.parametrize("url", [5, 0, Path("store"), b"memory:"])
def test_a_url_that_is_no_text_is_refused_by_its_value(url: Any) -> None:
    with pytest.raises(UsageError, match=r"^url is .*: it must be a string"):
        hybrid_search.connect(url)


def write_secret(tmp_path: Path, text: str, mode: int = 0o600) -> str:
    file = tmp_path / "secret"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return str(file)


@pytest.mark.parametrize(
    "value",
    [
        Secret(HUSH),
        Access(username="ada", password=Secret(HUSH)),
        [Secret(HUSH)],
        {"a": Secret(HUSH)},
    ],
)
def test_a_secret_is_not_in_what_is_printed_of_it_or_around_it(value: object) -> None:
    assert not any(HUSH in text for text in format_in_all_ways(value))
    assert "***" in repr(value)


def test_a_secret_is_had_by_reveal_alone() -> None:
    assert Secret(HUSH).reveal() == HUSH
    assert not hasattr(Secret(HUSH), "__dict__")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_is_not_pickled(protocol: int) -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Access(token=Secret(HUSH)), protocol)


def test_a_secret_is_copied_with_what_holds_it() -> None:
    access = Access(token=Secret(HUSH))
    assert copy.deepcopy(access) == access
    assert HUSH not in str(dataclasses.asdict(access))


def test_settings_with_the_same_secret_are_the_same_key_and_with_another_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`hybrid_search.query` keeps a client per settings, so a rotated key must make a new one."""
    set_variables(monkeypatch, API_KEY="a")
    first, again = settings("memory:"), settings("memory:")
    set_variables(monkeypatch, API_KEY="b")
    assert len({first, again}) == 1
    assert settings("memory:") != first


def test_nothing_set_is_no_login_and_the_defaults() -> None:
    assert settings("memory:").access == Access()
    assert Access() == Access(None, None, None, None, None, "es", None, True, 60.0)


def test_all_variables_arrive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ca = write_secret(tmp_path, "certificates")
    set_variables(monkeypatch, USERNAME="ada", PASSWORD=HUSH, CA=ca, VERIFY="No", TIMEOUT="2.5")
    assert settings("memory:").access == Access(
        "ada", Secret(HUSH), ca=Path(ca), verify=False, timeout=2.5
    )


@pytest.mark.parametrize(
    ("name", "field"), [("PASSWORD", "password"), ("API_KEY", "api_key"), ("TOKEN", "token")]
)
def test_a_secret_is_read_from_its_file_without_the_newline_at_its_end(
    name: str,
    field: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_variables(monkeypatch, **{f"{name}_FILE": write_secret(tmp_path, "abc\r\n")})
    assert getattr(settings("memory:").access, field) == Secret("abc")
    assert not caplog.text


def test_a_secret_file_that_others_can_read_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_secret(tmp_path, HUSH, 0o640)
    set_variables(monkeypatch, PASSWORD_FILE=file)
    settings("memory:")
    settings("memory:")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert (
        record.getMessage()
        == f"the secret in {file} can be read by others (mode 640): chmod 600 {file}"
    )


def test_a_variable_that_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, USERNAME="", PASSWORD="", API_KEY="", VERIFY="", TIMEOUT="")
    assert settings("memory:").access == Access()


MISTAKES: list[tuple[dict[str, str], str]] = [
    (
        {"USERNAME": "ada", "PASSWORD": HUSH, "TOKEN": "t0p"},
        "HYBRID_SEARCH_USERNAME or _PASSWORD and HYBRID_SEARCH_TOKEN are set",
    ),
    ({"API_KEY": "k3y", "TOKEN": "t0p"}, "HYBRID_SEARCH_API_KEY and HYBRID_SEARCH_TOKEN are set"),
    (
        {"API_KEY": "k3y", "AWS_REGION": "eu-west-1"},
        "HYBRID_SEARCH_API_KEY and HYBRID_SEARCH_AWS_REGION are set",
    ),
    ({"USERNAME": "ada"}, "user 'ada' has no password"),
    ({"USERNAME": f"ada:{HUSH}", "PASSWORD": HUSH}, "a username cannot hold a colon"),
    (
        {"PASSWORD": HUSH, "PASSWORD_FILE": "somewhere"},
        "HYBRID_SEARCH_PASSWORD and HYBRID_SEARCH_PASSWORD_FILE are both set",
    ),
    (
        {"API_KEY_FILE": "nowhere"},
        "HYBRID_SEARCH_API_KEY_FILE names 'nowhere', "
        "which cannot be read: No such file or directory",
    ),
    ({"TOKEN_FILE": "."}, "cannot be read: Is a directory"),
    (
        {"TOKEN": "t0p\nX-Evil: 1"},
        "HYBRID_SEARCH_TOKEN, or the file that holds it, is not one word of plain ASCII",
    ),
    (
        {"API_KEY": "k3y é"},
        "HYBRID_SEARCH_API_KEY, or the file that holds it, is not one word of plain ASCII",
    ),
    ({"AWS_SERVICE": "es"}, "HYBRID_SEARCH_AWS_REGION is not set"),
    ({"CA": "nowhere.pem"}, "HYBRID_SEARCH_CA names 'nowhere.pem', which is not a file"),
    ({"VERIFY": "maybe"}, "HYBRID_SEARCH_VERIFY is 'maybe': it must be true or false"),
    ({"TIMEOUT": "soon"}, "HYBRID_SEARCH_TIMEOUT is 'soon'"),
    ({"TIMEOUT": "0"}, "HYBRID_SEARCH_TIMEOUT is '0'"),
    ({"TIMEOUT": "inf"}, "HYBRID_SEARCH_TIMEOUT is 'inf'"),
    (
        {"PATIENCE": "-1"},
        "HYBRID_SEARCH_PATIENCE is '-1': it must be seconds, 0 or more",
    ),
]


@pytest.mark.parametrize(("variables", "message"), MISTAKES)
def test_what_is_not_clear_is_one_error_without_the_secret(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, **variables)
    with pytest.raises(UsageError) as caught:
        settings("memory:")
    assert message in str(caught.value)
    assert not any(secret in str(caught.value) for secret in (HUSH, "t0p", "k3y"))


@pytest.mark.parametrize(
    ("content", "message"), [(b"\n", "which is empty"), (b"\xff\xfe", "not UTF-8")]
)
def test_a_secret_file_without_a_secret_is_an_error_that_names_it(
    content: bytes, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    set_variables(monkeypatch, PASSWORD_FILE=str(file))
    with pytest.raises(UsageError, match=message) as caught:
        settings("memory:")
    assert str(file) in str(caught.value)


def test_a_password_may_belong_to_the_user_that_the_url_names() -> None:
    password = Access(password=Secret(HUSH))
    assert password.with_username("ada") == Access("ada", Secret(HUSH))
    with pytest.raises(UsageError, match="HYBRID_SEARCH_PASSWORD is set without a user"):
        password.with_username(None)


def test_a_user_in_the_url_counts_as_a_login() -> None:
    with pytest.raises(UsageError, match="one login at a time"):
        Access(api_key=Secret("k3y")).with_username("ada")
    with pytest.raises(
        UsageError, match="the URL names user 'ada' and HYBRID_SEARCH_USERNAME 'eve'"
    ):
        Access("eve", Secret(HUSH)).with_username("ada")
    with pytest.raises(UsageError, match="user 'ada' has no password"):
        Access().with_username("ada")


def test_the_header_of_each_login() -> None:
    """The first case is the example of RFC 7617, section 2."""
    headers = {
        Access("Aladdin", Secret("open sesame")): "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        Access("test", Secret("123\u00a3")): "Basic dGVzdDoxMjPCow==",
        Access(api_key=Secret("aWQ6a2V5")): "ApiKey aWQ6a2V5",
        Access(api_key=Secret("id:key")): "ApiKey aWQ6a2V5",
        Access(token=Secret("t0p")): "Bearer t0p",
    }
    assert [access.authorization() for access in headers] == [
        Secret(header) for header in headers.values()
    ]
    assert Access().authorization() is Access(aws_region="eu-west-1").authorization() is None


def test_a_server_that_repeats_what_it_was_sent_is_quoted_without_it() -> None:
    access = Access("Aladdin", Secret("open sesame"))
    scrubbed_text = access.scrub("no: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== (open sesame) for Aladdin")
    assert scrubbed_text == "no: Basic *** (***) for Aladdin"


URLS_WITH_SECRETS = [
    f"https://ada:{HUSH}@host:9200",
    f"opensearch+https://ada:{HUSH}@host",
    f"elasticsearch+http://:{HUSH}@host",
    f"https://ada%3A{HUSH}@host",
    f"https://ada:p/{HUSH}@host",
    f"https://ada:p#{HUSH}@host",
    f"https://host?password={HUSH}",
    f"https://host?shards=1&Api_Key={HUSH}",
    f"ftp://ada:{HUSH}@host",
]


@pytest.mark.parametrize("url", URLS_WITH_SECRETS)
def test_a_url_with_a_secret_is_refused_before_anything_keeps_it(url: str) -> None:
    with pytest.raises(UsageError, match="a URL must not hold a secret") as caught:
        hybrid_search.connect(url)
    assert HUSH not in str(caught.value)
    assert "HYBRID_SEARCH_PASSWORD_FILE" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://ada@host:9200/a?analyzer=standard",
        "memory:",
        "embedded:/srv/a:b@c",
        "http://[::1]:9200",
    ],
)
def test_a_url_without_a_secret_is_none_of_that(url: str) -> None:
    refuse_secrets(url)


def test_the_url_of_the_environment_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, URL=URLS_WITH_SECRETS[0])
    with pytest.raises(UsageError, match="a URL must not hold a secret"):
        settings()
