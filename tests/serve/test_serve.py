"""`hybrid-search serve` over HTTP: the answers of the Python API, and its errors as problems."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hybrid_search
from hybrid_search.client import Client
from hybrid_search.encoder import SHIPPED
from hybrid_search.search.query import PARAMETERS, QueryOptions
from hybrid_search.search.result import LIKELY
from hybrid_search.serve.guard import ROUTES
from hybrid_search.serve.problems import PROBLEM_TYPE
from hybrid_search.topics.judgments import read_judgments
from tests.helpers.cli import run_cli
from tests.helpers.service import JSON, HttpAnswer, RunningService, run_service

CLIENTS = 64
TOKEN = "a-token-that-nobody-guesses"
PHRASE = "somebody wants their money back"


def assert_problem(answer: HttpAnswer, status: int, *words: str) -> dict[str, Any]:
    """Assert that this is a problem with these words in its detail, and return it."""
    problem: dict[str, Any] = answer.json
    assert (answer.status, problem["status"]) == (status, status), problem
    assert answer.headers["content-type"] == PROBLEM_TYPE
    for word in words:
        assert word in problem["detail"]
    assert "Traceback" not in answer.body.decode()
    return problem


# Answers


def test_a_query_answers_what_python_answers(service: RunningService, sample: Client) -> None:
    options: QueryOptions = {
        "alpha": 0.3,
        "size": 4,
        "where": {"sector": ["shop", "bank"]},
        "explain": True,
        "facets": ["sector"],
    }
    answer = service.post("/v1/query", {"phrase": PHRASE, **options}).json
    expected = json.loads(json.dumps(sample.query(PHRASE, **options).to_dict()))
    del answer["plan"]["milliseconds"], expected["plan"]["milliseconds"]
    assert answer == expected


def test_several_phrases_are_a_list(service: RunningService, sample: Client) -> None:
    phrases = ["refund", "waiting on hold"]
    answer = service.post("/v1/query", {"phrase": phrases}).json
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in sample.query(phrases)]


def test_of_several_phrases_a_hit_names_the_one_that_it_fits_best(
    service: RunningService, sample: Client
) -> None:
    phrases = ["money back", "waiting on hold"]
    hits = service.post("/v1/query", {"phrase": phrases, "size": 20}).json["hits"]
    assert {hit["phrase"] for hit in hits} == set(phrases)
    best = {
        phrase: {hit.id: hit.score for hit in sample.query(phrase, size=100)} for phrase in phrases
    }
    for hit in hits:
        scores = {phrase: best[phrase].get(hit["id"], 0.0) for phrase in phrases}
        assert hit["phrase"] == max(scores, key=lambda phrase: scores[phrase])
    single = service.post("/v1/query", {"phrase": phrases[0]}).json["hits"][0]
    assert "phrase" not in single


TOPICS: list[dict[str, Any]] = [
    {"name": "refund", "phrases": ["put the money back on my card"]},
    {
        "name": "hold",
        "phrases": ["I am waiting on hold"],
        "not": ["hold the line"],
        "threshold": 0.1,
    },
]


def test_mining_sends_the_matches_of_python_as_lines(
    service: RunningService, sample: Client
) -> None:
    answer = service.post("/v1/mine", {"topics": TOPICS, "index": "calls"})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.body.splitlines()]
    expected = [match.to_dict() for match in sample.mine(TOPICS)]
    assert lines == json.loads(json.dumps(expected))
    assert {line["topic"] for line in lines} == {"refund", "hold"}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "topics is missing"),
        ({"topics": "/etc/passwd"}, 422, "topics is a str: it must be a list"),
        ({"topics": {"name": "a"}}, 422, "topics is a dict: it must be a list"),
        ({"topics": []}, 422, "has no topics"),
        ({"topics": [{"name": "a"}]}, 422, "it has no phrases"),
        ({"topics": TOPICS, "index": "cals"}, 404, "there is no index of this name"),
        ({"topics": TOPICS, "index": 1}, 422, "index is 1: it must be a string"),
        ({"topics": TOPICS, "size": 1}, 422, "there is no parameter 'size': use topics, index"),
        ({"topics": [{**TOPICS[0], "where": {"colour": "red"}}]}, 422, "colour"),
    ],
)
def test_what_is_wrong_with_topics_is_a_problem_before_the_first_line(
    service: RunningService, body: dict[str, Any], status: int, words: str
) -> None:
    assert_problem(service.post("/v1/mine", body), status, words)


def test_texts_adds_the_passage_and_its_turns(service: RunningService) -> None:
    hit = service.post("/v1/query", {"phrase": PHRASE, "size": 1, "texts": True}).json["hits"][0]
    span = hit["spans"][0]
    assert hit["text"][span["start"] - hit["start"] :].startswith(span["text"])
    assert {turn["speaker"] for turn in hit["turns"]} <= {"agent", "customer"}


def test_a_quotation_is_checked_as_python_does(service: RunningService, sample: Client) -> None:
    for text, is_said in (("it's got ... bones", True), ("it had got little bones", False)):
        answer = service.post("/v1/check-quote", {"text": text, "index": "calls", "places": 2})
        expected = sample.check_quote(text, places=2).to_dict()
        assert answer.json == json.loads(json.dumps(expected))
        assert answer.json["found"] is is_said
    assert_problem(service.post("/v1/check-quote", {"text": "?!"}), 422, "'?!' has no word")
    assert_problem(service.post("/v1/check-quote", {"index": "calls"}), 422, "text is missing")


def test_best_spans_answers_what_python_answers(service: RunningService) -> None:
    text = "I bought it last week. I want my money back."
    answer = service.post("/v1/best-spans", {"phrase": "refund request", "text": text, "k": 2})
    spans = hybrid_search.best_spans("refund request", text, k=2)
    assert answer.json["spans"] == json.loads(json.dumps([span.to_dict() for span in spans]))


def test_a_document_is_what_python_opens(service: RunningService, sample: Client) -> None:
    answer = service.get("/v1/documents/shop-001?phrase=money%20back&spans=2&alpha=0.25")
    view = sample.open_document("shop-001", "money back", spans=2, alpha=0.25)
    assert answer.json == json.loads(json.dumps(view.to_dict()))
    assert service.get("/v1/documents/shop-001").json["words"] == []


def test_the_indexes_are_listed_with_their_fields(service: RunningService, sample: Client) -> None:
    indexes = service.get("/v1/indexes").json["indexes"]
    index = {entry["name"]: entry for entry in indexes}["calls"]
    info = sample.describe()
    assert (index["documents"], index["passages"]) == (info.documents, info.passages)
    assert index["fields"] == dict(info.fields)
    assert index["model"] == info.spec.model


def test_health_metrics_and_description_are_there(service: RunningService) -> None:
    assert service.get("/healthz").json["status"] == "ok"
    metrics = service.get("/metrics").body.decode()
    assert 'hybrid_search_serve_requests_total{route="/healthz",status="200"}' in metrics
    description = service.get("/openapi.json").json
    assert description["openapi"].startswith("3.1")


def test_the_description_has_the_parameters_and_defaults_of_python(
    service: RunningService,
) -> None:
    body = service.get("/openapi.json").json["components"]["schemas"]["Query"]
    remote = [item for item in PARAMETERS.values() if not item.is_local]
    defaults = {item.public_name: json.loads(json.dumps(item.default)) for item in remote}
    assert "server_filter" not in defaults  # it could read what the service is not to show
    described = {name: schema.get("default") for name, schema in body["properties"].items()}
    assert described == {"phrase": None, **defaults, "texts": False}
    assert all(schema["description"] for schema in body["properties"].values())
    assert body["properties"]["size"]["maximum"] == 10_000
    kinds = {name: schema.get("type") for name, schema in body["properties"].items()}
    assert (kinds["explain"], kinds["highlight"], kinds["texts"]) == ("boolean",) * 3
    probability, nothing = body["properties"]["min_probability"]["anyOf"]
    assert probability == {"type": "number", "minimum": 0, "maximum": 1}
    assert nothing == {"type": "null"}


def test_the_form_of_the_page_has_the_limits_of_the_parameters(service: RunningService) -> None:
    page = service.get("/").body.decode()
    alpha = PARAMETERS["alpha"]
    low, high = alpha.limits or (None, None)
    assert f'type="range" min="{low}" max="{high}" step="0.05" value="{alpha.default}"' in page
    for name in ("speaker", "not_"):
        item = PARAMETERS[name]
        assert f'id="{item.public_name}" type="text" maxlength="{item.longest}"' in page


def test_every_path_that_answers_programs_is_described(service: RunningService) -> None:
    description = service.get("/openapi.json").json
    routes = ROUTES - {"/", "/openapi.json", "/mcp"} | {"/v1/documents/{id}"}
    assert set(description["paths"]) == routes


def test_every_body_that_is_described_has_an_example_that_is_answered(
    sample_url: str, tmp_path: Path
) -> None:
    with run_service(sample_url, "--judgments", str(tmp_path / "judgments.jsonl")) as service:
        paths = service.get("/openapi.json").json["paths"]
        for path, methods in paths.items():
            if "post" in methods:
                content = methods["post"]["requestBody"]["content"]["application/json"]
                answer = service.post(path, content["example"])
                assert answer.status == 200, (path, answer.body)


def test_an_answer_has_all_that_its_description_requires(service: RunningService) -> None:
    schemas = service.get("/openapi.json").json["components"]["schemas"]
    result = service.post("/v1/query", {"phrase": "refund request", "texts": True}).json
    hit = result["hits"][0]
    answers = {"Result": result, "Hit": hit, "Span": hit["spans"][0], "TurnPlace": hit["turns"][0]}
    for name, answer in answers.items():
        assert set(schemas[name]["required"]) <= set(answer), name


def test_an_answer_says_how_many_hits_are_likely(service: RunningService) -> None:
    result = service.post("/v1/query", {"phrase": "I want my money back"}).json
    probabilities = [hit["probability"] for hit in result["hits"]]
    assert result["likely"] == sum(value >= LIKELY for value in probabilities) > 0
    nothing = {"phrase": "a solar eclipse over the glacier"}
    assert service.post("/v1/query", nothing).json["likely"] == 0
    by_cosine = service.post("/v1/query", {**nothing, "spans_by": "cosine"}).json
    assert (by_cosine["likely"], by_cosine["hits"][0]["probability"]) == (None, None)
    schema = service.get("/openapi.json").json["components"]["schemas"]["Result"]
    described = schema["properties"]["likely"]
    assert described["type"] == ["integer", "null"]
    assert f"at least {LIKELY}:" in described["description"]


def test_an_answer_to_a_span_is_a_judgment_in_the_file(
    sample_url: str, sample: Client, tmp_path: Path
) -> None:
    file = tmp_path / "judgments.jsonl"
    span = sample.query(PHRASE, size=1, where={"id": "shop-001"}).hits[0].spans[0]
    body = {"phrase": PHRASE, "id": "shop-001", "start": span.start, "end": span.end}
    with run_service(sample_url, "--judgments", str(file)) as service:
        assert service.get("/v1/indexes").json["judgments"]
        assert service.get("/v1/judgments").json == {"judgments": []}
        for answer in ("no", "yes"):
            saved = service.post("/v1/judgments", {**body, "text": span.text, "answer": answer})
            assert saved.json["answer"] == answer
        assert service.get("/v1/judgments").json == {"judgments": [saved.json]}
        for change, status in (
            ({"answer": "maybe"}, 422),
            ({"text": "other words"}, 422),
            ({"start": -1}, 422),
            ({"extra": 1}, 422),
            ({"id": "nobody"}, 404),
        ):
            wrong = {**body, "text": span.text, "answer": "yes", **change}
            assert_problem(service.post("/v1/judgments", wrong), status)
    (judgment,) = read_judgments(file)
    assert (judgment.topic, judgment.id, judgment.answer) == (PHRASE, "shop-001", "yes")
    assert judgment.model == sample.describe().spec.fingerprint
    assert judgment.text == span.text
    assert len(file.read_text().splitlines()) == 2


def test_judgments_are_taken_only_if_a_file_is_named(service: RunningService) -> None:
    assert not service.get("/v1/indexes").json["judgments"]
    assert_problem(service.get("/v1/judgments"), 404, "--judgments")
    assert_problem(service.post("/v1/judgments", {}), 404, "--judgments")


# Errors


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"phrase": "money", "alpha": 2}, 422, "alpha is 2"),
        ({"phrase": "money", "size": "3"}, 422, "size is '3'"),
        ({"phrase": " "}, 422, "blank"),
        ({"alpha": 0.5}, 422, "phrase is missing"),
        ({"phrase": "money", "alfa": 1}, 422, "no parameter 'alfa'"),
        ({"phrase": "money", "url": "embedded:/tmp"}, 422, "no parameter 'url'"),
        ({"phrase": "money", "texts": 1}, 422, "texts is 1"),
        ({"phrase": "money", "where": {"colour": "red"}}, 422, "colour"),
        ({"phrase": "money", "index": "nothing"}, 404, "GET /v1/indexes"),
        ({"phrase": "money", "index": "../calls"}, 422, "index name"),
        ([1], 400, "must be an object"),
    ],
)
def test_a_wrong_value_is_a_problem_that_names_it(
    service: RunningService, body: Any, status: int, word: str
) -> None:
    assert_problem(service.post("/v1/query", body), status, word)


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/v1/documents/nobody", 404, "no document 'nobody'"),
        ("/v1/documents/shop-001?alpha=x&phrase=a", 422, "alpha is 'x'"),
        ("/v1/documents/shop-001?alpha=nan&phrase=a", 422, "alpha is nan"),
        ("/v1/documents/shop-001?beta=1", 422, "no parameter 'beta'"),
        ("/v1/documents/shop-001?phrase=a&phrase=b", 422, "twice"),
        ("/v1/document", 404, "/openapi.json"),
        ("/static/../app.py", 404, "/openapi.json"),
        ("/static/%2e%2e/app.py", 404, "/openapi.json"),
        ("/v1/query", 405, "POST"),
    ],
)
def test_a_wrong_path_or_parameter_is_a_problem(
    service: RunningService, path: str, status: int, word: str
) -> None:
    assert_problem(service.get(path), status, word)


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"phrase": NaN}', b'{"phrase": "\\ud800"}', b"\xff", b"[" * 100_000]
)
def test_a_body_that_is_not_json_is_a_problem(service: RunningService, body: bytes) -> None:
    assert_problem(service.request("POST", "/v1/query", body, JSON), 400, "not JSON")


def test_a_page_of_another_site_cannot_send_a_query(service: RunningService) -> None:
    """Browsers ask before they send JSON elsewhere, and this service never agrees."""
    body = json.dumps({"phrase": "money"}).encode()
    plain = service.request("POST", "/v1/query", body, {"Content-Type": "text/plain"})
    assert_problem(plain, 415, "application/json")
    asked = service.request("OPTIONS", "/v1/query", headers={"Origin": "http://evil.example"})
    assert asked.status == 405
    assert not [name for name in asked.headers if name.startswith("access-control")]


def test_a_name_that_was_pointed_at_this_machine_gets_no_answer(service: RunningService) -> None:
    assert_problem(service.get("/v1/indexes", Host="evil.example:8080"), 421, "evil.example")
    for name in ("localhost", "127.0.0.1:1", "[::1]:8080"):
        assert service.get("/v1/indexes", Host=name).status == 200


def test_no_answer_and_no_log_tells_a_phrase_or_a_place(
    service: RunningService, sample_url: str
) -> None:
    folder = sample_url.removeprefix("embedded:")
    answers = [
        service.post("/v1/query", {"phrase": PHRASE, "index": "nothing"}),
        service.post("/v1/query", {"phrase": PHRASE, "sort": "nothing"}),
        service.get(f"/v1/documents/nobody?phrase={PHRASE.replace(' ', '+')}"),
        service.get("/v1/indexes"),
        service.get("/openapi.json"),
        service.get("/metrics"),
    ]
    assert not [answer.body for answer in answers if folder.encode() in answer.body]
    assert any("/v1/query" in line for line in service.log)
    assert not [line for line in service.log if PHRASE in line or "money" in line]


def test_a_message_with_a_place_is_answered_without_it() -> None:
    from hybrid_search.errors import ModelError, ServerError, UsageError
    from hybrid_search.serve.problems import explain_error

    text = "opensearch+https://user@search.example:9200 is opensearch, at /data/store"
    assert explain_error(UsageError(text), "/data/store").detail == (
        "(address) is opensearch, at (place)"
    )
    for error, status in (
        (ServerError(text, 400), 502),
        (ServerError(text, 0), 503),
        (ModelError(text), 409),
    ):
        problem = explain_error(error, "/data/store")
        assert problem.status == status
        assert "search.example" not in problem.detail


def test_an_index_of_a_model_that_is_not_there_is_told_and_its_name_is_in_the_log(
    sample_url: str, tmp_path: Path
) -> None:
    settings = json.loads((SHIPPED / "encoder.json").read_text())
    renamed = {**settings, "name": "acme-small", "fingerprint": "0123456789abcdef"}
    for file in SHIPPED.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "encoder.json").unlink()
    (tmp_path / "encoder.json").write_text(json.dumps(renamed))
    with run_service(sample_url, "--model", str(tmp_path)) as service:
        answer = service.post("/v1/query", {"phrase": PHRASE})
        assert_problem(answer, 409, "its log says which")
        service.stop()
        assert any(SHIPPED.name in line for line in service.log)


def test_browsers_are_told_to_load_nothing_from_elsewhere(service: RunningService) -> None:
    for path in ("/", "/v1/indexes", "/nothing"):
        headers = service.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


# Limits


def test_many_clients_at_once_are_all_answered_alike(service: RunningService) -> None:
    start = threading.Barrier(CLIENTS)

    def ask(number: int) -> tuple[int, list[str]]:
        start.wait()
        answer = service.post("/v1/query", {"phrase": PHRASE, "size": 3, "alpha": number % 2})
        return answer.status, [hit["id"] for hit in answer.json["hits"]]

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(ask, range(CLIENTS)))
    assert {status for status, _ in answers} == {200}
    assert len({tuple(ids) for _, ids in answers[::2]}) == 1
    assert len({tuple(ids) for _, ids in answers[1::2]}) == 1


def test_calls_beyond_the_limit_are_told_to_come_back(sample_url: str) -> None:
    text = "I want my money back. " * 1_000  # a second of encoding or more
    with run_service(sample_url, "--queries", "1", "--timeout", "600") as service:

        def send_long_text() -> HttpAnswer:
            """Send a text until it is taken: the query below may be answered just then."""
            while True:
                answer = service.post("/v1/best-spans", {"phrase": "refund", "text": text})
                if answer.status != 429:
                    return answer

        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(send_long_text)
            while not slow.done():
                answer = service.post("/v1/query", {"phrase": "money", "size": 1})
                if answer.status == 429:
                    break
            assert_problem(answer, 429, "ask again")
            assert answer.headers["retry-after"] == "1"
            assert service.get("/healthz").status == 200
            assert slow.result().status == 200
        assert service.post("/v1/query", {"phrase": "money", "size": 1}).status == 200


def test_an_answer_that_takes_too_long_is_a_problem(sample_url: str) -> None:
    text = "I want my money back. " * 4_000
    with run_service(sample_url, "--timeout", "0.3") as service:
        answer = service.post("/v1/best-spans", {"phrase": "refund", "text": text})
        assert_problem(answer, 503, "0.3 seconds")
        assert "retry-after" in answer.headers


def test_a_body_has_a_size(sample_url: str) -> None:
    with run_service(sample_url, "--body-kilobytes", "2") as service:
        fitting = {"phrase": "refund", "text": "a " * 900}
        assert service.post("/v1/best-spans", fitting).status == 200
        large = {"phrase": "refund", "text": "a " * 1_000}
        assert_problem(service.post("/v1/best-spans", large), 413, "2,000 bytes")


def test_a_slow_client_is_cut_off_and_harms_nobody(sample_url: str) -> None:
    # the query beside it has the same time, and is the first one on what may be a busy machine
    with run_service(sample_url, "--timeout", "5") as service:
        address = ("127.0.0.1", service.port)
        with (
            socket.create_connection(address) as silent,
            socket.create_connection(address) as slow,
        ):
            head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
            slow.sendall(head + b"Content-Type: application/json\r\n\r\n{")
            assert service.post("/v1/query", {"phrase": "money"}).status == 200
            silent.settimeout(20)
            slow.settimeout(20)
            assert silent.recv(100) == b""
            assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_falls_silent_after_an_answer_is_cut_off(sample_url: str) -> None:
    """Half of a second request on the same connection, and then nothing."""
    with run_service(sample_url, "--timeout", "1") as service:
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.settimeout(20)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal")
            answer = b""
            while part := connection.recv(1000):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.count(b"HTTP/1.1") == 1


def test_a_cut_connection_harms_nobody(service: RunningService) -> None:
    body = json.dumps({"phrase": PHRASE, "size": 100}).encode()
    head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for part in (body[:5], body):
        for _ in range(8):
            connection = socket.create_connection(("127.0.0.1", service.port))
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + part)
            connection.close()
    assert service.post("/v1/query", {"phrase": PHRASE}).status == 200
    assert not [line for line in service.log if "unexpected" in line or "Traceback" in line]


# Start and end


def test_it_ends_by_sigterm_after_the_running_answer(sample_url: str) -> None:
    text = "I want my money back. " * 3_000
    with run_service(sample_url) as service:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(
                service.post, "/v1/best-spans", {"phrase": "refund", "text": text}
            )
            time.sleep(0.5)
            status = service.stop()
            assert running.result().status == 200
        assert status == 0
        assert not [line for line in service.log if "Traceback" in line]


def test_another_address_needs_a_token(sample_url: str, tmp_path: Path) -> None:
    result = run_cli("serve", "--url", sample_url, "--host", "0.0.0.0", "--port", "0")
    assert "--token-file" in result.error
    assert "0.0.0.0" in result.error


@pytest.mark.parametrize("token", ["short", "two words of a token", ""])
def test_a_token_that_can_be_guessed_is_refused_and_not_shown(token: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    error = run_cli("serve", "--token-file", str(file)).error
    assert "at least 16" in error
    assert not token or token not in error


def test_with_a_token_only_its_bearer_is_answered(sample_url: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    arguments = ("--host", "0.0.0.0", "--token-file", str(file))
    with run_service(sample_url, *arguments) as service:
        for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}):
            answer = service.get("/v1/indexes", **headers)
            assert_problem(answer, 401, "Authorization")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert TOKEN.encode() not in answer.body
        assert service.get("/metrics").status == 401
        assert service.get("/healthz").status == 200
        answer = service.get("/v1/indexes", Authorization=f"Bearer {TOKEN}", Host="any.example")
        assert answer.status == 200


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--port", "70000"], "--port is 70000"),
        (["--queries", "0"], "--queries is 0"),
        (["--timeout", "0"], "--timeout is 0"),
        (["--body-kilobytes", "0"], "--body-kilobytes is 0"),
        (["--token-file", "nowhere"], "nowhere"),
        (["--url", "nothing:x"], "nothing"),
    ],
)
def test_a_wrong_option_is_one_error(arguments: list[str], word: str) -> None:
    assert word in run_cli("serve", *arguments).error


def test_a_port_that_is_taken_is_an_error(service: RunningService, sample_url: str) -> None:
    error = run_cli("serve", "--url", sample_url, "--port", str(service.port)).error
    assert f"127.0.0.1:{service.port}" in error


def test_phrases_are_not_logged(sample_url: str) -> None:
    with run_service(sample_url, "--log-level", "debug") as service:
        service.post("/v1/query", {"phrase": PHRASE})
        service.stop()
    assert service.log
    assert not any(PHRASE in line for line in service.log)


def test_a_query_takes_a_speaker_and_what_is_not_meant(service: RunningService) -> None:
    body: dict[str, Any] = {
        "phrase": "money back",
        "speaker": "nobody at all",
        "not": ["thank you"],
    }
    answer = service.post("/v1/query", body).json
    assert answer["hits"] == []
    assert answer["plan"]["not"] == ["thank you"]
    assert "'nobody at all'" in answer["plan"]["warnings"][0]
    turns = [{"speaker": "a", "text": "My money back."}, {"speaker": "b", "text": "Thank you."}]
    body = {"phrase": "money back", "text": turns, "speaker": "b"}
    (span,) = service.post("/v1/best-spans", body).json["spans"]
    assert span["speaker"] == "b"
