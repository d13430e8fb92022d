"""Files of judgments: what is written is read, and what a kill cut off spoils nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from hybrid_search.errors import UsageError
from hybrid_search.topics.judgments import Judgment, append_judgments, current_time, read_judgments

FIRST = Judgment(
    "refund", "money back", "call-1", 3, 9, "é\nno", "yes", "abc-288", "2026-01-02T03:04:05+00:00"
)
SECOND = replace(FIRST, id="call-2", answer="no")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judgments.jsonl"


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
