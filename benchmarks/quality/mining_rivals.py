"""Rank the turns of customers for an intent, by mining and by what one might do without it.

Every turn of a customer is ranked by every way, and the average precision of each intent counts.
The keywords are what an analyst might write who has not read the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from benchmarks import lucene
from benchmarks.quality import bootstrap
from benchmarks.quality.discover import Turns
from benchmarks.quality.intent_labels import Labels, Turn
from benchmarks.quality.vectors import means
from hybrid_search.encoder import Encoder
from hybrid_search.search.types import Scores
from hybrid_search.topics.match import Match
from hybrid_search.topics.topic import Topic

# fmt: off
KEYWORDS = {
    "Alarm.AddAlarm": "alarm wake set add new morning clock ring remind early",
    "Alarm.GetAlarms": "alarms alarm list show check set existing current have ringing",
    "Calendar.AddEvent": "calendar add event schedule appointment put save entry remind date",
    "Calendar.GetAvailableTime": (
        "free available busy time calendar day open slot schedule afternoon"
    ),
    "Calendar.GetEvents": (
        "calendar schedule events agenda appointments day plans show planned today"
    ),
    "Media.FindMovies": "movie movies watch online stream find film genre suggest comedy",
    "Media.PlayMovie": "play movie watch start stream film subtitles now screen show",
    "Media.RentMovie": "rent movie film rental watch subtitles stream borrow online want",
    "Messaging.ShareLocation": (
        "share location send address friend contact where place position text"
    ),
    "Movies.BuyMovieTickets": "buy tickets movie purchase seats cinema book theater film show",
    "Movies.FindMovies": "movies movie playing theater cinema find showing near film genre",
    "Movies.GetTimesForMovie": "time times showing show movie theater when start showtimes cinema",
    "RentalCars.GetCarsAvailable": "car rent rental hire find available pickup vehicle suv sedan",
    "RentalCars.ReserveCar": "reserve car book rental insurance confirm hire vehicle pickup rent",
    "Restaurants.FindRestaurants": (
        "restaurant restaurants eat find food place dinner lunch hungry cuisine"
    ),
    "Restaurants.ReserveRestaurant": (
        "table reserve book restaurant party people booking seats dinner time"
    ),
    "Weather.GetWeather": "weather forecast temperature rain sunny wind cold humidity hot degrees",
}
"""Ten words for each intent that is measured."""


@dataclass(frozen=True, slots=True, eq=False)
class IntentTurns:
    """What is ranked for one intent, and what is right.

    Attributes:
        name: The intent.
        phrases: What is asked for.
        rows: The turns that are judged, by their numbers, int64 ``[turns]``.
        labels: Whether each states the intent, bool ``[turns]``.
    """

    name: str
    phrases: Sequence[str]
    rows: NDArray[np.int64]
    labels: NDArray[np.bool_]


def compare(
    intents: Sequence[IntentTurns],
    turns: Turns,
    mined: Mapping[Turn, Match],
    encoder: Encoder,
) -> dict[str, dict[str, Any]]:
    """Return the mean average precision of each way over the intents, with its interval.

    Args:
        intents: The intents.
        turns: All turns of customers.
        mined: The best mention of each turn.
        encoder: The encoder whose means the turns' vectors are.
    """
    scores: dict[str, list[Scores]] = {
        "mining": [_read_mined(intent, turns, mined) for intent in intents],
        "one vector a turn, the same phrases": [
            (turns.vectors @ means(encoder, intent.phrases).T).max(axis=1) for intent in intents
        ],
        "BM25, the same phrases": _score_best_phrases(intents, turns),
        "BM25, the name": lucene.score(turns.texts, [intent.phrases[0] for intent in intents]),
        "BM25, ten keywords": lucene.score(turns.texts, [KEYWORDS[item.name] for item in intents]),
    }
    return {
        way: bootstrap.summary(
            [
                float(average_precision_score(intent.labels, column[intent.rows]))
                for intent, column in zip(intents, columns, strict=True)
            ]
        )
        for way, columns in scores.items()
    }


def label_turns(topic: Topic, turns: Turns, labels: Labels) -> IntentTurns:
    """Return which of all turns are judged for a topic, and whether they state it."""
    places = [(topic.name, *place) for place in turns.places]
    rows = np.array([row for row, place in enumerate(places) if labels.know(place)])
    stated = np.array([places[row] in labels.turns for row in rows])
    return IntentTurns(topic.name, topic.phrases, rows, stated)


def _probability(match: Match | None) -> float:
    return match.probability if match else 0.0


def _read_mined(
    intent: IntentTurns, turns: Turns, mined: Mapping[Turn, Match]
) -> Scores:
    """Return the probability of each turn, 0 for one without a mention."""
    return np.array([_probability(mined.get((intent.name, *place))) for place in turns.places])


def _score_best_phrases(intents: Sequence[IntentTurns], turns: Turns) -> list[Scores]:
    """Return the score of each turn by the phrase that it scores best by, for each intent."""
    phrases = [phrase for intent in intents for phrase in intent.phrases]
    scores = iter(lucene.score(turns.texts, phrases))
    return [np.max([next(scores) for _ in intent.phrases], axis=0) for intent in intents]
