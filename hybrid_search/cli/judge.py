"""The command ``judge``: ask people whether spans are mentions of a topic."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.api import connect
from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import DocumentMissingError
from hybrid_search.observability import logs

if TYPE_CHECKING:
    from hybrid_search.client import Client
    from hybrid_search.search.hit import DocumentView
    from hybrid_search.topics.judging_queue import JudgingQueue
    from hybrid_search.topics.judgments import Judgment
    from hybrid_search.topics.match import Match
    from hybrid_search.topics.topics import Topics

KEYS = {"y": "yes", "n": "no", "s": "skip", "u": "undo", "q": "quit"}
CALL_HELP = "y(es), n(o), s(kip), q(uit)"
HELP = "y(es), n(o), s(kip), u(ndo), q(uit)"


def judge(
    topics: Annotated[Path, typer.Option(help="A file of topics, in YAML or JSON.")],
    index: options.Index = DEFAULT_INDEX,
    topic: Annotated[
        list[str] | None, typer.Option(help="Only this topic; may be repeated.")
    ] = None,
    judgments: Annotated[Path, typer.Option(help="The file that answers are added to.")] = Path(
        "judgments.jsonl"
    ),
    shares: Annotated[
        bool,
        typer.Option(
            "--shares", help="Ask about calls drawn at random, to narrow the shares of topics most."
        ),
    ] = False,
    count: Annotated[int | None, typer.Option(help="End after this many answers.", min=1)] = None,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Ask whether spans are mentions of their topic, the one whose answer would tell most first.

    Answers are read from standard input, one a line: y(es), n(o), s(kip), u(ndo), q(uit). Each is
    in the file before the next span is shown. With --shares a no is followed by the question
    whether the call has the topic anywhere else; the whole call is shown.
    """
    from hybrid_search.cli.progress import mining_progress
    from hybrid_search.topics.topics import Topics

    loaded_topics = Topics.load(topics)
    if topic:
        loaded_topics = loaded_topics.select(topic)
    with connect(**place) as client:
        with mining_progress(client.describe(index).documents) as report:
            queue = client.queue_judging(
                loaded_topics, judgments, index=index, report=report, shares=shares
            )
        session = _Session(client, loaded_topics, queue, index, judgments, as_json)
        session.run(count)
    session.show_summary()


@dataclass(slots=True)
class _Session:
    """A session that asks about the spans of a queue until it or standard input ends."""

    client: Client
    topics: Topics
    queue: JudgingQueue
    index: str
    path: Path
    as_json: bool
    written: list[Judgment] = field(default_factory=list)
    skipped: int = 0

    def run(self, count: int | None) -> None:
        """Ask until this many spans are judged, or all."""
        while count is None or len(self.written) < count:
            match = self.queue.choose()
            if match is None:
                logs.log_or_print("there is no other span to judge")
                return
            view = self._read_document(match)
            if view is None:  # deleted meanwhile
                self.queue.drop(match)
                continue
            self._show(match, view)
            action = _read_action()
            if action == "quit":
                return
            call = self._ask_call(match, view, action) if self.queue.asks_calls else ""
            if call == "quit":
                return
            self._act(call if call == "skip" else action, match, call)

    def show_summary(self) -> None:
        """Print how many judgments there are."""
        answers = Counter(judgment.answer for judgment in self.written)
        summary = {
            "answered": len(self.written),
            "yes": answers["yes"],
            "no": answers["no"],
            "skipped": self.skipped,
            "left": len(self.queue),
        }
        if self.as_json:
            options.print_json(summary)
        else:
            options.print_lines(
                f"{len(self.written)} answers ({answers['yes']} yes) written to {self.path}"
            )

    def _ask_call(self, match: Match, view: DocumentView, action: str) -> str:
        """Return whether the whole call has the topic, or skip or quit; it has if its span has."""
        if action != "no":
            return action
        if self.as_json:
            options.print_json({"topic": match.topic, "id": match.id, "call": view.text})
        else:
            options.print_lines(f"{view.text}\n{match.topic} anywhere in this call? {CALL_HELP}")
        sys.stdout.flush()
        while (answer := _read_action()) == "undo":
            logs.log_or_print(f"answer {CALL_HELP}")
        return answer

    def _act(self, action: str, match: Match, call: str) -> None:
        from hybrid_search.topics.judging_queue import make_judgment
        from hybrid_search.topics.judgments import append_judgments

        if action == "undo":
            self._undo()
        elif action == "skip":
            self.queue.skip(match)
            self.skipped += 1
        else:
            judgment = make_judgment(match, action, call)
            append_judgments(self.path, [judgment])
            self.queue.answer(match, is_mention="yes" in (action, call))
            self.written.append(judgment)

    def _undo(self) -> None:
        from hybrid_search.topics.judgments import remove_judgment

        step = self.queue.undo()
        if step is None:
            logs.log_or_print("there is nothing to undo")
        elif step[0] == "skip":
            self.skipped -= 1
        elif not remove_judgment(self.path, self.written.pop()):
            logs.log_or_print(
                f"another program has written to {self.path} since: the last answer stays until "
                "you give another one"
            )

    def _read_document(self, match: Match) -> DocumentView | None:
        try:
            return self.client.open_document(match.id, index=self.index)
        except DocumentMissingError:
            return None

    def _show(self, match: Match, view: DocumentView) -> None:
        from hybrid_search.topics.surroundings import read_neighbours, read_turn

        around, neighbours = read_turn(view, match), read_neighbours(view, match)
        (topic,) = self.topics.select([match.topic])
        if self.as_json:
            context = {
                "before": around.before,
                "after": around.after,
                "turn_before": neighbours[0],
                "turn_after": neighbours[1],
                "phrases": topic.phrases,
                "not": topic.not_phrases,
            }
            options.print_json({**match.to_dict(), **context})
        else:
            from hybrid_search.cli.show_result import show_match

            show_match(match, topic, around, neighbours, self.queue.estimate(match))
            options.print_lines(HELP)
        sys.stdout.flush()


def _read_action() -> str:
    """Return the next answer from standard input; its end counts as ``quit``."""
    while True:
        line = sys.stdin.readline()
        if not line:
            return "quit"
        answer = line.strip().lower()
        if answer in KEYS or answer in KEYS.values():
            return KEYS.get(answer, answer)
        logs.log_or_print(f"answer {HELP}")
