"""Requests to a server of either engine that answers well, badly, late or not at all."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import cbor2
import pytest

from hybrid_search.backends.server.dialects import DIALECTS
from hybrid_search.backends.server.dialects.base import format_version
from hybrid_search.backends.server.transport import bulk, retry
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.bulk import Action
from hybrid_search.backends.server.transport.client import parse_retry_after
from hybrid_search.backends.server.transport.connection import Server, connect
from hybrid_search.backends.server.transport.errors import MAX_REASON_LENGTH
from hybrid_search.credentials import Access, Secret
from hybrid_search.errors import AccessError, ServerError, UsageError
from hybrid_search.observability.traffic import count_traffic
from tests.helpers.cli import invoke_cli
from tests.helpers.fake_server import (
    HELLO,
    Certificates,
    HttpRequest,
    RawReply,
    Reply,
    Script,
    ScriptedServer,
    make_bulk_response,
    make_certificates,
    reply_in_turn,
)

ENGINES = tuple(DIALECTS)
NOBODY = Access(timeout=5.0)
ADA = Access("ada", Secret("s3cret-pässword"), timeout=5.0)
ROOT = [{"type": "parsing_exception", "reason": "x"}]
FAILED = {"type": "search_phase_execution_exception", "reason": "all shards failed"}
BROKEN = {"error": {**FAILED, "root_cause": ROOT}}
OK = Reply(body={"ok": True})
PAGE = Reply(body=b"<html>busy</html>", headers={"content-type": "text/html"})


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    monkeypatch.setattr(retry, "REQUEST", replace(retry.REQUEST, first=0.002))


def connect_to(
    engine: str, server: ScriptedServer, access: Access = NOBODY, path: str = ""
) -> Server:
    return connect(Address.parse(f"{engine}+{server.url}{path}"), access)


def send_failing_request(
    engine: str, script: Script, access: Access = NOBODY
) -> tuple[ServerError, list[HttpRequest]]:
    """Return the error of one request to a server with this `script`, and all its requests."""
    with ScriptedServer(script) as server, pytest.raises(ServerError) as caught:
        connect_to(engine, server, access).request("GET", "/calls/_search", body={"query": {}})
    return caught.value, server.requests


def error_body(kind: str, reason: str) -> dict[str, Any]:
    return {"error": {"type": kind, "reason": reason}}


def find_warning(caplog: pytest.LogCaptureFixture) -> str:
    """Return the only message of at least a warning."""
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return record.getMessage()


def test_an_answer_is_decoded_and_a_question_arrives_as_it_was_put(engine: str) -> None:
    with ScriptedServer(reply_in_turn(Reply(body={"a": ["ü", 1.5, None]}))) as server:
        answer = connect_to(engine, server).request(
            "POST",
            "/calls/_search",
            params={"size": 3, "typed_keys": True},
            body={"q": "ü"},
        )
    assert answer == {"a": ["ü", 1.5, None]}
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/calls/_search?size=3&typed_keys=true")
    assert request.body == '{"q":"ü"}'.encode()


def test_parameters_of_all_kinds_are_data(engine: str) -> None:
    with ScriptedServer(reply_in_turn(OK)) as server:
        connect_to(engine, server).request(
            "GET",
            "/calls",
            params={"a": "b&c=d #/?", "timeout": "3s", "ignore": 404, "list": "x,y"},
        )
    assert (
        server.requests[0].target
        == "/calls?a=b%26c%3Dd%20%23%2F%3F&timeout=3s&ignore=404&list=x%2Cy"
    )


def test_lines_are_sent_as_lines(engine: str) -> None:
    with ScriptedServer(reply_in_turn(OK)) as server:
        connect_to(engine, server).request(
            "POST", "/_msearch", lines=[{"index": "calls"}, {"query": {"match": {"text": "a\nb"}}}]
        )
    assert server.requests[0].body == b'{"index":"calls"}\n{"query":{"match":{"text":"a\\nb"}}}\n'
    assert "ndjson" in server.requests[0].headers["content-type"]


def test_a_number_that_json_does_not_have_is_not_sent(engine: str) -> None:
    with (
        ScriptedServer(reply_in_turn(OK)) as server,
        pytest.raises(ValueError, match="not JSON compliant"),
    ):
        connect_to(engine, server).request(
            "POST", "/calls/_search", body={"vector": [float("nan")]}
        )
    assert not server.requests


def test_head_is_yes_or_no(engine: str) -> None:
    with ScriptedServer(reply_in_turn(Reply(200), Reply(404))) as server:
        client = connect_to(engine, server)
        assert client.request("HEAD", "/calls") is True
        assert client.request("HEAD", "/nope") is False


def test_a_prefix_stands_before_every_path(engine: str) -> None:
    with ScriptedServer(reply_in_turn(OK)) as server:
        connect_to(engine, server, path="/behind/gateway").request("GET", "/calls")
    assert server.requests[0].target == "/behind/gateway/calls"


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_what_passes_is_asked_again_and_said_once(
    engine: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(reply_in_turn(Reply(status), Reply(status), Reply(status), OK)) as server:
        assert connect_to(engine, server).request("GET", "/calls") == {"ok": True}
    assert len(server.requests) == 4
    why = f"answered GET /calls with {status}: no reason given; trying again"
    assert find_warning(caplog) == f"{engine}+{server.url} {why}"


@pytest.mark.parametrize("fault", [Reply(reset=True), PAGE, Reply(body=b'{"ok": tr')])
def test_an_answer_that_is_lost_or_garbled_is_asked_for_again(engine: str, fault: Reply) -> None:
    with ScriptedServer(reply_in_turn(fault, fault, OK)) as server:
        assert connect_to(engine, server).request("GET", "/calls") == {"ok": True}
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 404, 405, 409, 413, 500])
def test_what_does_not_pass_is_asked_once_and_the_server_says_why(engine: str, status: int) -> None:
    error, requests = send_failing_request(engine, reply_in_turn(Reply(status, BROKEN), OK))
    assert len(requests) == 1
    assert error.status == status
    why = "search_phase_execution_exception: all shards failed; parsing_exception: x"
    assert str(error).endswith(f"answered GET /calls/_search with {status}: {why}")
    assert error.__cause__ is not None


def test_a_server_that_stays_busy_is_given_up_after_six_tries(engine: str) -> None:
    error, requests = send_failing_request(engine, reply_in_turn(Reply(503, {"error": "starting"})))
    assert len(requests) == 6
    assert (type(error), error.status) == (ServerError, 503)
    assert "starting (after 6 tries in 0 s)" in str(error)


def test_a_server_says_itself_when_to_come_again(engine: str) -> None:
    with ScriptedServer(reply_in_turn(Reply(429, headers={"retry-after": "1"}), OK)) as server:
        started_at = time.monotonic()
        connect_to(engine, server).request("GET", "/calls")
    assert time.monotonic() - started_at >= 1.0


def test_a_server_that_wants_to_be_left_alone_for_longer_than_we_wait_is_given_up_at_once(
    engine: str,
) -> None:
    error, requests = send_failing_request(
        engine, reply_in_turn(Reply(503, headers={"retry-after": "3600"}))
    )
    assert len(requests) == 1
    assert error.retry_after == 3600


def test_a_time_to_come_again_is_a_number_or_a_date() -> None:
    assert parse_retry_after("7") == 7.0
    assert 50 < (parse_retry_after(formatdate(time.time() + 60, usegmt=True)) or 0) <= 60
    assert parse_retry_after(formatdate(time.time() - 60, usegmt=True)) == 0.0
    assert parse_retry_after("soon") is parse_retry_after("") is parse_retry_after(None) is None


def test_a_late_answer_is_none(engine: str) -> None:
    error, requests = send_failing_request(
        engine, reply_in_turn(Reply(wait=0.6)), Access(timeout=0.1)
    )
    assert error.status == 0
    assert "no answer from" in str(error)
    assert "it was silent for 0.1 s (HYBRID_SEARCH_TIMEOUT) (after 6 tries" in str(error)
    assert len(requests) == 6


def test_pauses_grow_to_a_limit_and_are_spread_from_nothing() -> None:
    """Full jitter: the n-th pause is drawn from 0 to min(most, first * 2**n).

    With a thousand draws the largest comes within 2% of that.
    """
    policy = retry.RetryPolicy(6, first=0.5, longest=4.0)
    drawn = [[policy.draw_pause(number) for _ in range(1000)] for number in range(5)]
    for pauses, most in zip(drawn, [0.5, 1.0, 2.0, 4.0, 4.0], strict=True):
        assert 0 <= min(pauses) < 0.02 * most
        assert 0.98 * most < max(pauses) <= most


def test_a_long_reason_is_cut(engine: str) -> None:
    long = Reply(400, error_body("t", "x" * 9999))
    error, _ = send_failing_request(engine, reply_in_turn(long))
    assert MAX_REASON_LENGTH < len(str(error)) < MAX_REASON_LENGTH + 200


def test_a_page_of_a_gateway_is_quoted_without_its_markup(engine: str) -> None:
    page = Reply(403, b"<html><b>Not</b> for\nyou</html>", {"content-type": "text/html"})
    error, _ = send_failing_request(engine, reply_in_turn(page))
    assert "(403): Not for you." in str(error)


LOGIN_REMEDIES = {
    "user 'ada' (401)": (ADA, "Check HYBRID_SEARCH_USERNAME and HYBRID_SEARCH_PASSWORD"),
    "the API key (401)": (
        Access(api_key=Secret("k3y-of-ours")),
        "Check HYBRID_SEARCH_API_KEY (or HYBRID_SEARCH_API_KEY_FILE)",
    ),
    "the token (401)": (Access(token=Secret("t0ken-of-ours")), "Check HYBRID_SEARCH_TOKEN"),
    "a request without login (401)": (NOBODY, "HYBRID_SEARCH_TOKEN: none is set"),
}


@pytest.mark.parametrize("login", LOGIN_REMEDIES)
def test_a_refused_login_is_not_tried_again_and_the_error_says_whose_and_where_it_is_set(
    engine: str, login: str
) -> None:
    access, remedy = LOGIN_REMEDIES[login]

    def echo(request: HttpRequest) -> Reply:
        sent = request.headers.get("authorization")
        return Reply(401, error_body("security_exception", f"no: {sent}"))

    error, requests = send_failing_request(engine, echo, access)
    assert len(requests) == 1
    assert (type(error), error.status) == (AccessError, 401)
    assert f"refused {login}: security_exception: no:" in str(error)
    assert remedy in str(error)
    header = access.authorization()
    assert header is None or header.reveal().split()[1] not in str(error)


def test_what_a_user_may_not_do_is_told_with_the_request(engine: str) -> None:
    refusal = error_body("security_exception", "no permissions for [indices:data/read]")
    error, requests = send_failing_request(engine, reply_in_turn(Reply(403, refusal)), ADA)
    assert (type(error), error.status, len(requests)) == (AccessError, 403, 1)
    assert (
        "does not let user 'ada' do GET /calls/_search (403): security_exception: no "
        "permissions for [indices:data/read]" in str(error)
    )


def test_an_index_that_refuses_everybody_is_no_matter_of_access(engine: str) -> None:
    why = "index [calls] blocked by: [FORBIDDEN/8/index write (api)];"
    blocked = error_body("cluster_block_exception", why)
    error, _ = send_failing_request(engine, reply_in_turn(Reply(403, blocked)))
    assert (type(error), error.status) == (ServerError, 403)


@pytest.mark.parametrize("body", [cbor2.dumps(BROKEN), b"\xff no CBOR"])
def test_an_error_comes_in_the_form_of_the_answer_that_was_asked_for_and_is_read(
    engine: str, body: bytes
) -> None:
    with (
        ScriptedServer(lambda _: Reply(400, body, {"content-type": "application/cbor"})) as server,
        pytest.raises(ServerError) as caught,
    ):
        connect_to(engine, server).request("POST", "/calls/_search", body={}, binary=True)
    if body.startswith(b"\xff"):
        assert "CBOR" in str(caught.value)
    else:
        assert str(caught.value).endswith(
            "400: search_phase_execution_exception: all shards failed; parsing_exception: x"
        )


def test_a_redirection_is_not_followed_with_our_login(engine: str) -> None:
    with ScriptedServer(reply_in_turn(OK)) as redirect_target:
        error, requests = send_failing_request(
            engine, reply_in_turn(Reply(302, headers={"location": f"{redirect_target.url}/"})), ADA
        )
    assert (error.status, len(requests), redirect_target.requests) == (302, 1, [])


def test_warnings_of_a_server_are_no_warnings_of_python(engine: str) -> None:
    with (
        ScriptedServer(
            reply_in_turn(Reply(headers={"warning": '299 Elasticsearch-9 "[old] is deprecated"'}))
        ) as server,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        assert connect_to(engine, server).request("GET", "/calls") == {}


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "scheme",
    ["opensearch+http", "elasticsearch+http", "opensearch+https", "elasticsearch+https", "http"],
)
def test_a_server_that_is_down_is_told_at_the_first_request_and_not_before(scheme: str) -> None:
    server = connect(Address.parse(f"{scheme}://127.0.0.1:{find_free_port()}"), NOBODY)
    with pytest.raises(
        ServerError, match=r"no answer from .* to GET /.*: Connection refused \(after 6 tries"
    ) as caught:
        server.request("GET", "/calls")
    assert caught.value.status == 0
    assert not isinstance(caught.value, AccessError)


@pytest.mark.parametrize("command", [("query", "x"), ("delete", "--yes"), ("doctor",)])
def test_a_command_for_a_server_that_is_down_prints_one_line(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # else the product logs nothing
    url = f"http://127.0.0.1:{find_free_port()}"
    result = invoke_cli(*command, "--url", url)
    lines = [line for line in result.stderr.splitlines() if line.startswith(("error", "WARNING"))]
    assert len(lines) == (0 if command == ("doctor",) else 1), result.stderr
    assert "Connection refused" in result.stderr + result.stdout


def test_who_waits_long_for_a_first_try_is_told(
    engine: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "SLOW_TRY", 0.05)
    with ScriptedServer(reply_in_turn(Reply(wait=0.6), Reply(reset=True), OK)) as server:
        connect_to(engine, server, Access(timeout=0.1)).request("GET", "/calls")
    assert find_warning(caplog).endswith("; trying again")


def test_one_connection_serves_many_threads(engine: str) -> None:
    with (
        ScriptedServer(lambda request: Reply(body={"target": request.target}, wait=0.02)) as server,
        ThreadPoolExecutor(64) as pool,
    ):
        client = connect_to(engine, server)
        answers = list(
            pool.map(lambda number: client.request("GET", f"/{number}")["target"], range(128))
        )
    assert answers == [f"/{number}" for number in range(128)]


# Which server it is


def test_the_engine_is_asked_where_the_url_does_not_name_it(engine: str) -> None:
    with ScriptedServer(reply_in_turn(Reply(body=HELLO[engine]))) as server:
        client = connect(Address.parse(server.url), NOBODY)
        assert not server.requests
        assert client.engine == engine
        assert format_version(client.version) == HELLO[engine]["version"]["number"]
        client.request("GET", "/calls")
        assert client.version
    assert [request.target for request in server.requests] == ["/", "/calls"]


VERSIONS = {
    ("opensearch", "2.11.1"): "is opensearch 2.11.1: the oldest supported version is 2.12.0",
    (
        "elasticsearch",
        "8.12.9",
    ): "is elasticsearch 8.12.9: the oldest supported version is 8.13.0",
    ("opensearch", "7.10.2"): "set compatibility.override_main_response_version to false",
}


@pytest.mark.parametrize(("engine", "number"), VERSIONS)
def test_a_server_that_is_too_old_is_refused_with_both_versions(engine: str, number: str) -> None:
    distribution = {"distribution": "opensearch"} if engine == "opensearch" else {}
    hello = {"version": {"number": number, **distribution}}
    with (
        ScriptedServer(reply_in_turn(Reply(body=hello))) as server,
        pytest.raises(ServerError) as caught,
    ):
        connect_to(engine, server).version  # asking is what is tested  # noqa: B018
    assert VERSIONS[engine, number] in str(caught.value)


@pytest.mark.parametrize("number", ["2.12.0", "3.9.0-SNAPSHOT"])
def test_the_oldest_and_an_unreleased_version_are_taken(number: str) -> None:
    with ScriptedServer(
        reply_in_turn(Reply(body={"version": {"distribution": "opensearch", "number": number}}))
    ) as server:
        assert connect_to("opensearch", server).version == tuple(
            map(int, number.removesuffix("-SNAPSHOT").split("."))
        )


def test_a_url_that_names_the_other_engine_is_told_so(engine: str) -> None:
    other_engine = ENGINES[ENGINES.index(engine) - 1]
    with (
        ScriptedServer(reply_in_turn(Reply(body=HELLO[other_engine]))) as server,
        pytest.raises(ServerError, match=f"is {other_engine} .*, but the URL says {engine}"),
    ):
        connect_to(engine, server).version  # noqa: B018


@pytest.mark.parametrize(
    "body",
    [{}, [], {"version": "1.0"}, {"version": {"number": "latest"}}, {"name": "some other service"}],
)
def test_what_is_no_search_server_is_told_so(body: Any) -> None:
    with (
        ScriptedServer(reply_in_turn(Reply(body=body))) as server,
        pytest.raises(ServerError, match="is neither OpenSearch nor Elasticsearch"),
    ):
        connect(Address.parse(server.url), NOBODY).request("GET", "/calls")


# Encryption


def make_tls_server(tls: Certificates) -> ScriptedServer:
    return ScriptedServer(reply_in_turn(OK), tls.certificate, tls.key)


def test_a_server_with_a_certificate_of_our_own_authority_is_trusted_by_its_bundle(
    engine: str, tls: Certificates
) -> None:
    with make_tls_server(tls) as server:
        client = connect_to(engine, server, Access(ca=tls.authority))
        assert client.request("GET", "/calls") == OK.body


def test_a_certificate_of_nobody_we_know_is_refused_before_anything_is_sent(
    engine: str, tls: Certificates
) -> None:
    with (
        make_tls_server(tls) as server,
        pytest.raises(
            AccessError, match=r"is not trusted: .*certificate.* HYBRID_SEARCH_CA"
        ) as caught,
    ):
        connect_to(engine, server, ADA).request("GET", "/calls")
    assert caught.value.status == 0
    assert "tries" not in str(caught.value)
    assert not server.requests


@pytest.fixture
def _public(tls: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our authority is among those of certifi."""
    monkeypatch.setattr("certifi.where", lambda: str(tls.authority))


@pytest.mark.usefixtures("_public")
def test_without_a_bundle_public_authorities_are_trusted_and_with_one_they_are_not(
    engine: str, tls: Certificates, tmp_path: Path
) -> None:
    with make_tls_server(tls) as server:
        assert connect_to(engine, server).request("GET", "/calls") == {"ok": True}
        other = Access(ca=make_certificates(tmp_path).authority)
        with pytest.raises(AccessError, match="is not trusted"):
            connect_to(engine, server, other).request("GET", "/calls")


def test_a_certificate_for_another_host_is_refused(engine: str, tls: Certificates) -> None:
    """It is for 127.0.0.1, but the URL says localhost."""
    with make_tls_server(tls) as server, pytest.raises(AccessError, match=r"(?i)hostname mismatch"):
        connect(
            Address.parse(f"{engine}+https://localhost:{server.port}"), Access(ca=tls.authority)
        ).request("GET", "/calls")


def test_a_bulk_request_to_a_server_that_is_not_trusted_ends(
    engine: str, tls: Certificates
) -> None:
    with make_tls_server(tls) as server, pytest.raises(AccessError, match="is not trusted"):
        list(connect_to(engine, server).bulk([Action("calls", "a")]))


def test_any_certificate_is_taken_where_that_was_asked_for_and_warned_of_once(
    engine: str, tls: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    with make_tls_server(tls) as server:
        client = connect_to(engine, server, Access(verify=False))
        assert [client.request("GET", "/calls") for _ in range(3)] == [{"ok": True}] * 3
    assert "HYBRID_SEARCH_VERIFY is false" in find_warning(caplog)


def test_a_bundle_that_holds_no_certificate_is_told_by_its_name(
    engine: str, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("nothing")
    with pytest.raises(
        UsageError, match=r"HYBRID_SEARCH_CA names '.*bundle\.pem', which is not a PEM file"
    ):
        connect(Address.parse(f"{engine}+https://127.0.0.1"), Access(ca=bundle))


def test_the_wrong_protocol_is_guessed_at(engine: str, tls: Certificates) -> None:
    with (
        ScriptedServer(reply_in_turn(OK)) as server,
        pytest.raises(ServerError, match="may speak http, not https"),
    ):
        connect(Address.parse(f"{engine}+https://127.0.0.1:{server.port}"), NOBODY).request(
            "GET", "/calls"
        )
    with (
        make_tls_server(tls) as server,
        pytest.raises(ServerError, match=r"no answer from .* to GET /calls"),
    ):
        connect(Address.parse(f"{engine}+http://127.0.0.1:{server.port}"), NOBODY).request(
            "GET", "/calls"
        )


@pytest.mark.parametrize(
    ("url", "times"),
    [
        ("http://search.example", 1),
        ("http://127.0.0.1", 0),
        ("http://localhost", 0),
        ("https://search.example", 0),
    ],
)
def test_texts_that_travel_open_are_warned_of_once_except_on_this_machine(
    url: str, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    connect(Address.parse(f"opensearch+{url}"), NOBODY)
    assert [record.getMessage() for record in caplog.records] == [
        f"opensearch+{url}:9200 is not encrypted: texts, vectors and the login can be read on "
        f"the way; use https"
    ] * times


# Bulk


def actions(count: int, size: int = 1) -> Iterator[Action]:
    source = json.dumps({"text": "x" * size}).encode()
    return (Action("calls", str(number), source) for number in range(count))


def accept_bulk(request: HttpRequest) -> Reply:
    return Reply(body=make_bulk_response(request, 201))


def statuses(server: Server, count: int, size: int = 1) -> list[int]:
    outcomes = list(server.bulk(actions(count, size)))
    assert [outcome.action for outcome in outcomes] == list(actions(count, size))
    return [outcome.status for outcome in outcomes]


def test_each_action_has_its_outcome_in_its_order(engine: str) -> None:
    bulk_actions = [
        Action("calls", "a#0", '{"text":"ü"}'.encode()),
        Action("calls", "gone"),
        Action("calls", "b#0", b'{"passages":2}'),
        Action("calls", "c#0", b"{}"),
    ]
    busy = error_body(
        "es_rejected_execution_exception",
        'queue [index {[calls][b#0], source[{"text": "my card"}]}]',
    )
    wrong = error_body("document_parsing_exception", "no")
    wrong["error"]["caused_by"] = {"reason": "deep"}
    items = [
        {"index": {"_id": "a#0", "status": 201}},
        {"delete": {"_id": "gone", "status": 404, "result": "not_found"}},
        {"index": {"_id": "b#0", "status": 429, **busy}},
        {"index": {"_id": "c#0", "status": 400, **wrong}},
    ]
    with ScriptedServer(reply_in_turn(Reply(body={"errors": True, "items": items}))) as server:
        outcomes = list(connect_to(engine, server).bulk(bulk_actions))
    assert [outcome.action for outcome in outcomes] == bulk_actions
    busy_kind, wrong_kind = busy["error"]["type"], wrong["error"]["type"]
    assert [(outcome.status, outcome.kind, outcome.reason) for outcome in outcomes] == [
        (201, "", ""),
        (404, "", ""),
        (429, busy_kind, f"{busy_kind}: queue [index {{[calls][b#0], source[...]"),
        (400, wrong_kind, f"{wrong_kind}: no; deep"),
    ]
    assert [outcome.is_accepted for outcome in outcomes] == [True, True, False, False]
    assert [outcome.is_transient for outcome in outcomes] == [False, False, True, False]
    sent_lines = [json.loads(line) for line in server.requests[0].body.splitlines()]
    assert sent_lines[:2] == [{"index": {"_id": "a#0", "_index": "calls"}}, {"text": "ü"}]
    assert len(sent_lines) == 7  # a deletion is one line, everything else two


@pytest.mark.parametrize(
    ("count", "size", "chunks"),
    [(1201, 1, [500, 500, 201]), (10, bulk.CHUNK_BYTES // 4, [3, 3, 3, 1])],
)
def test_requests_are_cut_by_count_and_by_size(
    engine: str, count: int, size: int, chunks: list[int]
) -> None:
    with ScriptedServer(accept_bulk) as server:
        assert statuses(connect_to(engine, server), count, size) == [201] * count
    assert [len(make_bulk_response(request)["items"]) for request in server.requests] == chunks
    assert max(len(request.body) for request in server.requests) <= bulk.CHUNK_BYTES


FAULTS = {
    "reset": (Reply(reset=True), 0),
    "late": (Reply(wait=1.0), 0),
    "not JSON": (Reply(body=b"{", headers={}), 0),
    "page": (PAGE, 0),
    "429": (Reply(429, {"error": "busy"}), 429),
    "503": (Reply(503, b"<html/>", {"content-type": "text/html"}), 503),
    "413": (Reply(413, b""), 413),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_that_fails_is_the_outcome_of_each_of_its_actions_and_the_others_go_on(
    engine: str, fault: str
) -> None:
    """Requests of 500, 500 and 200 actions, of which the second fails."""
    reply, status = FAULTS[fault]
    answers = iter([None, reply, None, None])
    with ScriptedServer(lambda request: next(answers, None) or accept_bulk(request)) as server:
        actual = statuses(connect_to(engine, server, Access(timeout=0.5)), 1200)
    assert actual == [201] * 500 + [status] * 500 + [201] * 200
    assert len(server.requests) == 3


def test_a_bulk_request_is_sent_once_and_the_reason_is_told(engine: str) -> None:
    with ScriptedServer(reply_in_turn(Reply(503, {"error": "starting"}))) as server:
        (outcome,) = connect_to(engine, server).bulk(actions(1))
    assert len(server.requests) == 1
    assert outcome.reason.endswith("answered POST /_bulk with 503: starting")


@pytest.mark.parametrize("status", [401, 403])
def test_a_bulk_request_of_somebody_who_may_not_ends(engine: str, status: int) -> None:
    refusal = Reply(status, error_body("security_exception", "no"))
    with ScriptedServer(reply_in_turn(refusal)) as server, pytest.raises(AccessError) as caught:
        list(connect_to(engine, server, ADA).bulk(actions(3)))
    assert caught.value.status == status
    assert len(server.requests) == 1


def test_an_item_that_is_forbidden_is_the_outcome_of_that_item(engine: str) -> None:
    forbidden = {"_id": "0", "status": 403, **error_body("security_exception", "no")}
    items = [{"index": forbidden}, {"index": {"_id": "1", "status": 201}}]
    with ScriptedServer(reply_in_turn(Reply(body={"items": items}))) as server:
        assert statuses(connect_to(engine, server), 2) == [403, 201]


def test_actions_that_an_answer_leaves_out_are_not_taken_for_done(engine: str) -> None:
    """Of 500 actions the answer lacks the first two and the last, of 3 the last."""

    def answer_short(request: HttpRequest) -> Reply:
        items = make_bulk_response(request, 201)["items"]
        return Reply(body={"items": items[2:-1] if len(items) == 500 else items[:-1]})

    with ScriptedServer(answer_short) as server:
        expected = [0, 0, *([201] * 497), 0, 201, 201, 0]
        assert statuses(connect_to(engine, server), 503) == expected


def test_actions_are_read_as_they_are_sent_and_left_as_they_were(engine: str) -> None:
    read_actions: list[Action] = []

    def source() -> Iterator[Action]:
        for action in actions(2000):
            read_actions.append(action)
            yield action

    with ScriptedServer(accept_bulk) as server:
        outcomes = connect_to(engine, server).bulk(source())
        next(outcomes)
        assert len(read_actions) <= 2 * bulk.CHUNK_ACTIONS
        assert len(list(outcomes)) == 1999
    assert read_actions == list(actions(2000))


def test_an_error_of_where_actions_come_from_is_raised_as_it_is(engine: str) -> None:
    def source() -> Iterator[Action]:
        yield from actions(3)
        raise RuntimeError("no more")

    with ScriptedServer(accept_bulk) as server, pytest.raises(RuntimeError, match="no more"):
        list(connect_to(engine, server).bulk(source()))


def test_no_actions_are_no_request(engine: str) -> None:
    with ScriptedServer(accept_bulk) as server:
        assert list(connect_to(engine, server).bulk([])) == []
    assert not server.requests


# Limits of an answer

ONCE = retry.RetryPolicy(tries=1)


def test_the_time_of_a_request_begins_anew_on_a_kept_connection(engine: str) -> None:
    """Three answers of 0.4 s each are in time, although together they are not."""
    with ScriptedServer(lambda _: Reply(body={"ok": True}, wait=0.4)) as server:
        client = connect_to(engine, server, Access(timeout=1.0)).with_policy(ONCE)
        assert [client.request("GET", "/calls") for _ in range(3)] == [OK.body] * 3


def test_a_server_that_takes_a_request_slowly_is_left_when_its_time_is_over(engine: str) -> None:
    """It reads nothing of a bulk request, and the buffers of the sockets are full."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"{engine}+http://127.0.0.1:{listener.getsockname()[1]}"
        server = connect(Address.parse(address), Access(timeout=0.3))
        outcomes = list(server.bulk(actions(40, 400_000)))
    assert {outcome.status for outcome in outcomes} == {0}
    assert "it was silent for 0.3 s" in outcomes[0].reason


def send_slowly(data: bytes, chunks: int) -> Iterator[bytes]:
    """Yield an answer in chunks that come after 1.2 s each."""
    yield b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    # the server closes the socket behind a raw reply, which the next request must not use
    yield b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    size = -(-len(data) // chunks)
    for start in range(0, len(data), size):
        time.sleep(1.2)
        chunk = data[start : start + size]
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"0\r\n\r\n"


def test_a_slow_answer_is_taken_if_it_is_complete_when_its_time_is_over(engine: str) -> None:
    """Never silent for the two seconds that are allowed."""
    data = json.dumps({"text": "x" * 80}).encode()

    def answer(request: HttpRequest) -> RawReply:
        return RawReply(send_slowly(data, 2 if "two" in request.target else 3))

    with ScriptedServer(answer) as server:
        client = connect_to(engine, server, Access(timeout=2.0)).with_policy(ONCE)
        with count_traffic() as traffic:
            assert client.request("GET", "/two") == json.loads(data)
        assert traffic["answer_bytes"] == len(data)  # also of chunks, which do not say their size
        with pytest.raises(ServerError, match=r"the answer was not complete after 2 s \(HYBRID_"):
            client.request("GET", "/three")


LARGE = json.dumps({"text": "x" * 2_000_000}).encode()
SIZES: dict[str, Reply] = {
    "as it says": Reply(body=LARGE),
    "without saying so": Reply(body=LARGE, headers={"content-length": "", "connection": "close"}),
    "compressed": Reply(
        body=gzip.compress(LARGE),
        headers={"content-encoding": "gzip"},
    ),
    "in an error": Reply(500, LARGE),
}


@pytest.mark.parametrize("kind", SIZES)
def test_an_answer_over_the_limit_is_not_read_and_not_asked_for_again(
    engine: str, kind: str
) -> None:
    error, requests = send_failing_request(
        engine, reply_in_turn(SIZES[kind]), Access(timeout=5.0, answer_megabytes=1)
    )
    assert len(requests) == 1
    assert str(error).endswith(
        "answered GET /calls/_search with more than 1 MB: ask for less, or raise "
        "HYBRID_SEARCH_ANSWER_MEGABYTES"
    )


@pytest.mark.parametrize("kind", ["as it says", "without saying so", "compressed"])
def test_an_answer_below_the_limit_is_read_however_it_comes(engine: str, kind: str) -> None:
    with ScriptedServer(reply_in_turn(SIZES[kind])) as server:
        client = connect_to(engine, server, Access(timeout=5.0, answer_megabytes=3))
        for _ in range(2):
            assert client.request("GET", "/calls") == json.loads(LARGE)


# Answers to bulk requests that cannot be used

UNUSABLE_ITEMS: dict[str, Any] = {
    "none": {"ok": True},
    "a number": {"items": 5},
    "no objects": {"items": ["index"]},
    "empty objects": {"items": [{}]},
    "two kinds": {"items": [{"index": {"_id": "0", "status": 201}, "delete": {"status": 200}}]},
    "a status in words": {"items": [{"index": {"_id": "0", "status": "created"}}]},
    "another id": {"items": [{"index": {"_id": "of another", "status": 201}}]},
    "an id that is a number": {"items": [{"index": {"_id": 0, "status": 201}}]},
    "too large": {"items": [{"index": {"_id": "0", "status": 201, "note": "x" * 2_000_000}}]},
}


@pytest.mark.parametrize("kind", UNUSABLE_ITEMS)
def test_a_bulk_answer_that_cannot_be_used_ends_the_writing_and_counts_nothing_as_done(
    engine: str, kind: str
) -> None:
    with ScriptedServer(reply_in_turn(Reply(body=UNUSABLE_ITEMS[kind]))) as server:
        client = connect_to(engine, server, Access(timeout=5.0, answer_megabytes=1))
        with pytest.raises(ServerError, match=r"answered POST /_bulk with") as caught:
            list(client.bulk(actions(1)))
    assert len(server.requests) == 1
    assert "hybrid-search doctor" in str(caught.value) or kind == "too large"


def test_an_item_may_have_a_key_of_the_same_name_as_one_of_the_client_library(engine: str) -> None:
    items = [{"index": {"_id": "0", "status": 400, "exception": "x", "error": "no"}}]
    with ScriptedServer(reply_in_turn(Reply(body={"items": items}))) as server:
        assert statuses(connect_to(engine, server), 1) == [400]


# Secrets

LOGINS = {
    "password": Access("ada", Secret("s3cret-of-ours"), timeout=0.5),
    "key": Access(api_key=Secret("s3cret-of-ours"), timeout=0.5),
    "pair": Access(api_key=Secret("id:s3cret-of-ours"), timeout=0.5),
    "token": Access(token=Secret("s3cret-of-ours"), timeout=0.5),
}


def collect_printed_texts(server: Server) -> Iterator[str]:
    """Return all that a program may print of a server, its answers and its errors."""
    asks = (lambda: server.request("GET", "/calls"), lambda: list(server.bulk(actions(1))))
    for ask in asks:
        try:
            yield repr(ask())
        except ServerError as error:
            yield from (str(error), repr(error), repr(vars(error)))
            yield from (str(error.__cause__), repr(error.__cause__))
    yield from (repr(server), str(server))


@pytest.fixture
def debug_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """All loggers at DEBUG."""
    caplog.set_level(logging.DEBUG)
    return caplog


@pytest.mark.parametrize("login", LOGINS)
def test_a_secret_is_sent_and_is_in_no_log_error_or_repr(
    engine: str, login: str, debug_log: pytest.LogCaptureFixture
) -> None:
    """For requests that are answered, refused, reset, late and garbled, single and bulk."""
    header = (LOGINS[login].authorization() or Secret("")).reveal()
    texts: list[str] = []
    for reply in (
        OK,
        Reply(401, BROKEN),
        Reply(400, BROKEN),
        Reply(reset=True),
        Reply(wait=0.8),
        Reply(body=b"{"),
    ):
        with ScriptedServer(reply_in_turn(reply, Reply(400, BROKEN))) as server:
            texts += collect_printed_texts(connect_to(engine, server, LOGINS[login]))
            assert {request.headers["authorization"] for request in server.requests} == {header}
    assert len(debug_log.records) > 12
    texts += [debug_log.text, *(str(vars(record)) for record in debug_log.records)]
    assert not [text for text in texts if "s3cret-of-ours" in text or header.split()[1] in text]


def test_without_a_login_no_header_says_who_we_are(engine: str) -> None:
    with ScriptedServer(reply_in_turn(OK)) as server:
        connect_to(engine, server).request("GET", "/calls")
    assert "authorization" not in server.requests[0].headers


def test_a_user_in_the_url_logs_in_with_the_password_of_the_environment(engine: str) -> None:
    with ScriptedServer(reply_in_turn(OK)) as server:
        url = f"{engine}+{server.scheme}://Aladdin@127.0.0.1:{server.port}"
        connect(Address.parse(url), Access(password=Secret("open sesame"))).request("GET", "/calls")
    assert server.requests[0].headers["authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
