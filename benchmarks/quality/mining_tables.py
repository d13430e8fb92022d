"""Tables of docs/benchmarks.md about mining and discovery."""

from __future__ import annotations

from benchmarks import results
from benchmarks.markdown import table
from benchmarks.quality.meaning import format_summary


def mining() -> str:
    """Render how well intents that were kept out of the fit are mined, by threshold."""
    ways = [
        results.read_result(name, results.QUALITY)["dev"]["thresholds"]
        for name in ("mining", "mining-feedback")
    ]
    measures = ("precision", "recall")
    return table(
        "probability at least",
        [*measures, *[f"{measure}, feedback 10" for measure in measures]],
        ways[0],
        lambda name: [f"{way[name][measure]:.2f}" for way in ways for measure in measures],
    )


def mining_rivals() -> str:
    """Render how well mining ranks the turns that state an intent, and other ways."""
    ways = {
        name: value
        for name, value in results.read_result("mining-rivals", results.QUALITY).items()
        if isinstance(value, dict) and "mean" in value
    }
    return table(
        "turns ranked by",
        ("average precision (95% interval)",),
        ways,
        lambda way: [format_summary(ways[way])],
    )


WAYS = ("no judgment", "20 at random", "20 as judge asks")
JUDGING = (
    "calibration error of likely mentions",
    "recall at the threshold",
    "precision at the threshold",
    "topics with mentions at the threshold",
)


def judging() -> str:
    """Render what twenty judgments a topic buy."""
    measured = results.read_result("judging", results.QUALITY)
    return table(
        "mean of the topics",
        WAYS,
        JUDGING,
        lambda name: [f"{measured[way][name]:.3f}" for way in WAYS],
    )


def discovery() -> str:
    """Render what discover and its rivals bring to light, with each half of the intents hidden."""
    halves = results.read_result("discover", results.QUALITY)["halves"].values()
    columns = [f"{measure}, {half}" for half in ("A", "B") for measure in ("found", "V", "AMI")]

    def cells(way: str) -> list[str]:
        figures = [(half["ways"][way], half["hidden"]) for half in halves]
        return [
            cell
            for row, hidden in figures
            for cell in (f"{row['found']} of {hidden}", f"{row['V']:.2f}", f"{row['AMI']:.2f}")
        ]

    ways = next(iter(halves))["ways"]
    return table("first 30 groups", columns, ways, cells)


def render_missed() -> str:
    """Render how right the estimate is of what is missed."""
    measured = results.read_result("missed", results.QUALITY)
    rows = {
        **{f"intents, {name}": row for name, row in measured["intents"].items() if name != "calls"},
        "written turns, measured": measured["written"],
    }
    return table(
        "topics, and the map of each",
        ("the interval held for", "expected in all", "missed in all"),
        rows,
        lambda name: [
            f"{rows[name]['held']} of {rows[name]['topics']}",
            f"{rows[name]['expected']:,.0f}",
            f"{rows[name]['missed']:,}",
        ],
    )


def render_mentions() -> str:
    """Render how right the probabilities of queries are, on sets that were kept out of the fit."""
    sets = results.read_result("mentions", results.QUALITY)["sets"]
    columns = (
        "calibration error",
        "calibration error of likely mentions",
        "phrases with a likely hit",
    )
    return table(
        "phrases of",
        columns,
        sets,
        lambda name: [f"{sets[name][column]:.3f}" for column in columns],
    )


TABLES = {
    "mentions": render_mentions,
    "missed": render_missed,
    "mining": mining,
    "mining_rivals": mining_rivals,
    "judging": judging,
    "discovery": discovery,
}
