"""Judging: the span whose answer tells most comes first, and no answer in the file is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search import Match, connect
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.topics.judging_queue import (
    CELL_SPANS,
    TARGETS,
    CandidateSample,
    JudgingQueue,
    make_judgment,
    match_place,
)
from hybrid_search.topics.judgments import (
    Judgment,
    append_judgments,
    current_time,
    read_judgments,
    remove_judgment,
)
from tests.helpers.cli import CommandResult, invoke_cli

FILE = """
- {name: refund, phrases: [I want my money back], threshold: 0.9}
- {name: hold, phrases: [waiting on hold], threshold: 0.9}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judgments.jsonl"


def make_match(probability: float, number: int = 0, topic: str = "refund") -> Match:
    return Match(
        topic, "x", f"call-{number}", 0, None, 3, 9, "abcdef", 0.5, probability, None, None, {}, "m"
    )


def make_grid(topic: str = "refund") -> list[Match]:
    return [make_match(number / 100, number, topic) for number in range(1, 100)]


# The queue


def test_the_first_span_is_the_most_uncertain_one() -> None:
    choice = JudgingQueue(make_grid()).choose()
    assert choice is not None
    assert choice.probability == 0.5


def test_questions_are_near_the_targets_as_the_answers_so_far_have_the_map() -> None:
    queue = JudgingQueue(make_grid())
    for number in range(12):
        match = queue.choose()
        assert match is not None
        target = TARGETS[number % len(TARGETS)]
        open_estimates = [queue.estimate(rival) for rival in make_grid()]
        nearest = min(abs(estimate - target) for estimate in open_estimates)
        assert abs(queue.estimate(match) - target) <= nearest + 0.15
        queue.answer(match, is_mention=match.probability > 0.8)
    # what is asked for is said no to up to .8: by now .5 lies far above the .5 of the first map
    assert queue.estimate(make_match(0.5, 50)) < 0.3


def test_the_topic_with_the_fewest_answers_is_asked_about() -> None:
    queue = JudgingQueue([*make_grid("hold"), *make_grid("refund")])
    topics = []
    for _ in range(6):
        match = queue.choose()
        assert match is not None
        topics.append(match.topic)
        queue.answer(match, is_mention=True)
    assert topics == ["hold", "refund"] * 3


def test_earlier_judgments_count_and_are_not_asked_about_again() -> None:
    grid = make_grid()
    judgments = [make_judgment(grid[number], "no") for number in range(0, 80, 4)]
    queue = JudgingQueue(grid, judgments)
    assert len(queue) == 99 - 20
    assert queue.estimate(grid[49]) < JudgingQueue(grid).estimate(grid[49])
    asked = set()
    while match := queue.choose():
        asked.add(match.id)
        queue.skip(match)
    assert asked == {match.id for match in grid} - {judgment.id for judgment in judgments}


def test_undo_asks_again_and_forgets_the_answer() -> None:
    queue = JudgingQueue(make_grid())
    assert queue.undo() is None
    first = queue.choose()
    assert first is not None
    queue.answer(first, is_mention=True)
    second = queue.choose()
    assert second is not None
    queue.skip(second)
    estimate = queue.estimate(first)
    assert queue.undo() == ("skip", second)
    assert queue.choose() == second
    assert queue.undo() == ("answer", first)
    assert queue.choose() == first
    assert len(queue) == 99
    assert queue.estimate(first) < estimate


def test_a_queue_without_spans_chooses_none() -> None:
    assert JudgingQueue([]).choose() is None


def test_a_sample_has_spans_of_all_probabilities_in_whatever_order_they_come() -> None:
    generator = np.random.default_rng(0)
    matches = [
        make_match(float(p), number) for number, p in enumerate(generator.beta(0.2, 2, 5000))
    ]
    judged = match_place(matches[17])
    samples = []
    for rows in (matches, matches[::-1]):
        sample = CandidateSample([judged])
        for match in rows:
            sample.add(match)
        samples.append(sample.list_matches())
    assert samples[0] == samples[1]
    assert judged in map(match_place, samples[0])
    bins = np.bincount([int(match.probability * 10) for match in samples[0]], minlength=10)
    assert bins[:5].tolist() == pytest.approx([CELL_SPANS] * 5, abs=1)
    assert bins[9] == sum(match.probability >= 0.9 for match in matches)


# The file


def test_only_the_last_line_can_be_taken_back(path: Path) -> None:
    first, second = (make_judgment(match, "yes") for match in make_grid()[:2])
    append_judgments(path, [first, second])
    assert not remove_judgment(path, first)
    assert remove_judgment(path, second)
    assert read_judgments(path) == [first]
    assert remove_judgment(path, first)
    assert path.read_bytes() == b""
    assert not remove_judgment(path, first)


# The command


@pytest.fixture
def topics_file(tmp_path: Path) -> Path:
    path = tmp_path / "topics.yaml"
    path.write_text(FILE)
    return path


def judge(url: str, topics: Path, path: Path, answers: str, *more: str) -> CommandResult:
    arguments = ("--topics", str(topics), "--judgments", str(path), "--url", url)
    return invoke_cli("judge", *arguments, *more, stdin=answers)


def shown_spans(result: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()[:-1]]


def places(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["topic"], row["id"], row["start"], row["end"]) for row in rows]


def test_answers_from_a_pipe_are_written_and_can_be_tuned_with(
    sample_url: str, sample: Client, topics_file: Path, path: Path
) -> None:
    result = judge(sample_url, topics_file, path, "y\nn\nwhat\ns\nyes\nu\nn\nq\n", "--json")
    rows = shown_spans(result)
    assert result.status == 0
    assert result.json == {
        "answered": 3,
        "yes": 1,
        "no": 2,
        "skipped": 1,
        "left": result.json["left"],
    }
    assert "answer y(es), n(o), s(kip), u(ndo), q(uit)" in result.stderr
    judgments = read_judgments(path)
    assert [judgment.answer for judgment in judgments] == ["yes", "no", "no"]
    assert [judgment.place for judgment in judgments[:2]] == places(rows[:2])
    assert places(rows)[3] == places(rows)[5]  # taken back, and asked again
    assert judgments[2].place == places(rows)[3]
    for row in rows:
        view = sample.open_document(row["id"])
        around = row["before"] + row["text"] + row["after"]
        assert row["text"] == view.text[row["start"] : row["end"]]
        assert around.strip("… ") in view.text
    tuning = sample.tune(topics_file, path)
    assert (tuning.judgments, tuning.others) == (3, None)


def test_people_see_the_words_marked_and_the_command_ends_by_itself(
    sample_url: str, topics_file: Path, path: Path
) -> None:
    options = ("--topic", "hold", "--count", "2")
    result = judge(sample_url, topics_file, path, "n\ny\ny\n", *options)
    judgments = read_judgments(path)
    assert {judgment.topic for judgment in judgments} == {"hold"}
    for judgment in judgments:
        assert f"[{judgment.text}]" in " ".join(result.stdout.split())
        assert f"hold?  {judgment.id}" in result.stdout
    assert f"2 answers (1 yes) written to {path}" in result.stdout.replace("\n", "")
    again = judge(sample_url, topics_file, path, "", "--topic", "hold", "--json")
    assert again.json["answered"] == 0


def test_people_see_the_keys_the_phrases_and_the_turns_around(
    tmp_path: Path, topics_file: Path, path: Path
) -> None:
    url = f"embedded:{tmp_path / 'store'}"
    turns = [
        ("agent", "Good morning, what can I do?"),
        ("customer", "I want my money back."),
        ("agent", "Let me see " + "and see " * 60 + "the end"),
    ]
    with connect(url) as client:
        client.ingest(
            [{"id": "a", "turns": [{"speaker": who, "text": text} for who, text in turns]}]
        )
    topics_file.write_text('[{"name": "refund", "phrases": ["money back"], "not": ["paid"]}]')
    shown = " ".join(judge(url, topics_file, path, "y\n", "--count", "1").stdout.split())
    assert "means: money back not: paid agent: Good morning, what can I do?" in shown
    assert "agent: Let me see and see" in shown
    assert "the end" not in shown  # cut
    assert "y(es), n(o), s(kip), u(ndo), q(uit)" in shown
    path.unlink()
    row = shown_spans(judge(url, topics_file, path, "y\n", "--count", "1", "--json"))[0]
    assert row["turn_before"] == "agent: Good morning, what can I do?"
    assert (row["phrases"], row["not"]) == (["money back"], ["paid"])


def test_what_was_answered_is_there_after_a_kill(
    sample_url: str, topics_file: Path, path: Path
) -> None:
    command = [sys.executable, "-m", "hybrid_search", "judge", "--json"]
    options = ["--topics", str(topics_file), "--judgments", str(path), "--url", sample_url]
    with subprocess.Popen(
        [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        process.stdin.write("y\n")
        process.stdin.flush()
        second = json.loads(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    (judgment,) = read_judgments(path)
    assert judgment.answer == "yes"
    assert judgment.place != places([second])[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--topic", "other"), "there is no topic 'other': the topics are refund, hold"),
        (("--count", "0"), "--count is '0'"),
        (("--index", "other"), "there is no index 'other'"),
    ],
)
def test_a_wrong_command_is_one_line(
    sample_url: str, topics_file: Path, path: Path, options: tuple[str, ...], message: str
) -> None:
    result = judge(sample_url, topics_file, path, "y\n", *options)
    assert message in result.error


# Files of judgments: what a kill cut off spoils nothing


FIRST = Judgment(
    "refund", "money back", "call-1", 3, 9, "é\nno", "yes", "abc-288", "2026-01-02T03:04:05+00:00"
)
SECOND = replace(FIRST, id="call-2", answer="no")


def test_what_is_appended_is_read(path: Path) -> None:
    append_judgments(path, [FIRST])
    append_judgments(path, [SECOND])
    assert read_judgments(path) == [FIRST, SECOND]
    assert [judgment.is_mention for judgment in (FIRST, SECOND)] == [True, False]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_last_answer_about_a_span_holds(path: Path) -> None:
    corrected = replace(FIRST, answer="no")
    append_judgments(path, [FIRST, SECOND, corrected])
    assert read_judgments(path) == [corrected, SECOND]


def test_a_line_that_a_kill_cut_off_is_passed_over_and_spoils_no_other(path: Path) -> None:
    append_judgments(path, [FIRST])
    with path.open("ab") as file:
        file.write(b'{"topic": "re')
    assert read_judgments(path) == [FIRST]
    append_judgments(path, [SECOND])
    assert read_judgments(path) == [FIRST, SECOND]


def test_a_last_line_without_a_newline_stays(path: Path) -> None:
    path.write_text(json.dumps(FIRST.to_dict()))
    append_judgments(path, [SECOND])
    assert read_judgments(path) == [FIRST, SECOND]


def test_a_line_of_another_tool_may_have_more_keys(path: Path) -> None:
    path.write_text(json.dumps({**FIRST.to_dict(), "judge": "Ada"}) + "\n\n")
    assert read_judgments(path) == [FIRST]


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"answer": "maybe"}, "answer is not yes or no"),
        ({"start": 9, "end": 9}, "start and end are not places in a text"),
        ({"start": "3"}, "start and end are not places in a text"),
        ({"start": True}, "start and end are not places in a text"),
        ({"text": 3}, "text is not a string"),
        ({"call": "maybe"}, "call is not yes or no"),
    ],
)
def test_a_line_that_is_no_judgment_is_named(
    path: Path, change: dict[str, object], mistake: str
) -> None:
    lines = [json.dumps({**FIRST.to_dict(), **change}), json.dumps(FIRST.to_dict())]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match=f"judgments.jsonl:1 is not a judgment .*{mistake}"):
        read_judgments(path)


def test_a_missing_file_is_an_error(path: Path) -> None:
    with pytest.raises(UsageError, match="name a file of judgments"):
        read_judgments(path)


def test_the_time_has_its_zone() -> None:
    assert datetime.fromisoformat(current_time()).tzinfo is not None
