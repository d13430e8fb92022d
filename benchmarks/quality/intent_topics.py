"""The intents of calls_sgd as topics: three phrasings each, one of them written for this."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

SPOKEN = {
    "Alarm.AddAlarm": "can you wake me up with an alarm",
    "Alarm.GetAlarms": "which alarms do I have",
    "Calendar.AddEvent": "put this in my calendar",
    "Calendar.GetAvailableTime": "when am I free on that day",
    "Calendar.GetEvents": "what is on my schedule that day",
    "Events.BuyEventTickets": "I want to buy tickets for the event",
    "Events.FindEvents": "is there a concert or a game going on",
    "Events.GetEventDates": "on which date does the event take place",
    "Flights.ReserveOnewayFlight": "please book me a one way ticket",
    "Flights.ReserveRoundtripFlights": "please book me a round trip ticket",
    "Flights.SearchOnewayFlight": "I am looking for a one way flight",
    "Flights.SearchRoundtripFlights": "I am looking for a flight there and back",
    "Hotels.BookHouse": "I want to book this house",
    "Hotels.ReserveHotel": "please reserve a room at this hotel",
    "Hotels.SearchHotel": "I need a hotel to stay in",
    "Hotels.SearchHouse": "I am looking for a house to stay in",
    "Media.FindMovies": "find me a movie to watch online",
    "Media.PlayMovie": "play that movie for me",
    "Media.RentMovie": "I would like to rent that movie",
    "Messaging.ShareLocation": "share my location with a friend",
    "Movies.BuyMovieTickets": "get me tickets for the movie",
    "Movies.FindMovies": "which movies are playing at the theater",
    "Movies.GetTimesForMovie": "at what time is the movie showing",
    "RentalCars.GetCarsAvailable": "I am looking for a car to rent",
    "RentalCars.ReserveCar": "please reserve the rental car",
    "Restaurants.FindRestaurants": "I am looking for a place to eat",
    "Restaurants.ReserveRestaurant": "book me a table",
    "RideSharing.GetRide": "I need a cab to get there",
    "Services.BookAppointment": "make me an appointment",
    "Services.FindProvider": "find me a dentist, doctor or hair stylist",
    "Travel.FindAttractions": "what is there to see in the city",
    "Weather.GetWeather": "what will the weather be like",
}
"""How a customer might say it."""


def build_topics(queries: Sequence[Mapping[str, Any]], threshold: float) -> list[dict[str, Any]]:
    """Return a topic for each intent: its name in words, its first description, and `SPOKEN`."""
    return [
        {
            "name": query["id"],
            "phrases": [name_in_words(query["id"]), query["texts"][0], SPOKEN[query["id"]]],
            "speaker": "customer",
            "threshold": threshold,
        }
        for query in queries
    ]


def name_in_words(intent: str) -> str:
    """Return the name of an intent as words: ``Alarm.AddAlarm`` is "add alarm"."""
    words = re.findall(r"[A-Z][a-z]+", intent.partition(".")[2])
    return " ".join(words).lower()
