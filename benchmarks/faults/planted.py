"""Made-up calls with secrets planted in them, each of which stands nowhere else."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

TURNS = (
    ("agent", "Thank you for calling, what can I do for you today?"),
    ("customer", "The parcel with the {thing} never came, and I want my money back."),
    ("agent", "I am sorry about that, let me look at the order for the {thing}."),
    ("customer", "{secret}"),
    ("agent", "I can see it here, it left our warehouse on {day} and then nothing happened."),
    ("customer", "It has been two weeks, and nobody called me about the {thing}."),
    ("agent", "I will send the {thing} again, or I pay it back to your card."),
    ("customer", "Then pay it back please, I bought a {thing} elsewhere on {day}."),
)
THINGS = (
    *("kettle", "lamp", "bicycle", "carpet", "printer"),
    *("camera", "heater", "mattress", "radio", "blender"),
)
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
FIRST_PARTS = (
    *("Bra", "Cul", "Dor", "Fen", "Gris", "Hal", "Jor"),
    *("Kest", "Lin", "Mor", "Nev", "Ost", "Pell", "Quin", "Rost"),
)
LAST_PARTS = (
    *("backer", "combe", "dahl", "enfeld", "fritz"),
    *("gard", "hurst", "iston", "kova", "lund"),
)
SAYINGS = {
    "name": "Yes, my name is {secret}, I live near the station.",
    "card": "The card is {secret} and it is still valid.",
    "mail": "You can write to {secret} if that is easier.",
}


@dataclass(frozen=True, slots=True)
class Planted:
    """Calls, the spans of their secrets, and the secrets themselves, in the order of the spans."""

    calls: list[dict[str, Any]]
    spans: list[dict[str, Any]]
    words: list[str]


def plant_secrets(count: int, secrets: int, seed: int = 0) -> Planted:
    """Return `count` calls, of which every so many has one of `secrets` secrets."""
    generator = random.Random(seed)  # noqa: S311 (nothing is secret)
    planted = Planted([], [], [])
    every = count // secrets
    for number in range(count):
        has_secret = number % every == 0 and len(planted.words) < secrets
        kind = list(SAYINGS)[number // every % len(SAYINGS)]
        word = _make_secret(generator, kind, len(planted.words)) if has_secret else ""
        said = SAYINGS[kind].format(secret=word) if word else "Yes, it was ordered last month."
        thing, day = generator.choice(THINGS), generator.choice(DAYS)
        turns = [
            {"speaker": speaker, "text": text.format(thing=thing, day=day, secret=said)}
            for speaker, text in TURNS
        ]
        planted.calls.append({"id": f"call-{number:05d}", "turns": turns, "thing": thing})
        if word:
            start = "\n".join(turn["text"] for turn in turns).index(word)
            span = {"id": f"call-{number:05d}", "start": start, "end": start + len(word)}
            planted.spans.append({**span, "type": kind})
            planted.words.append(word)
    return planted


def _make_secret(generator: random.Random, kind: str, number: int) -> str:
    """Return a name, a number of a card or an address of mail; `number` makes it the only one."""
    first = FIRST_PARTS[number % len(FIRST_PARTS)]
    name = f"{first}{LAST_PARTS[number // len(FIRST_PARTS) % len(LAST_PARTS)]}{number:03d}x"
    digits = f"{generator.randrange(10**11, 10**12)}{number:04d}"
    return {
        "name": f"Orla {name}",
        "card": " ".join(digits[start : start + 4] for start in range(0, 16, 4)),
        "mail": f"{name.lower()}@post.example",
    }[kind]
