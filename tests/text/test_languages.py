"""Languages: how a document names its own, and how the words of each are cut."""

from __future__ import annotations

import pytest

from hybrid_search.text.languages import (
    LANGUAGES,
    describe_unknown,
    find_language,
    parse_language,
    recognise_language,
)
from hybrid_search.text.stems import count_stems, find_matches, stem_text


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("de", "de"),
        ("DE-at", "de"),
        ("pt_BR", "pt"),
        ("ger", "de"),
        ("fra", "fr"),
        ("nb", "no"),
        (" Spanish ", "es"),
        ("pl", None),
        ("", None),
        (7, None),
        (None, None),
        (["de"], None),
    ],
)
def test_a_language_is_read_from_codes_and_names(value: object, code: str | None) -> None:
    assert parse_language(value) == code


@pytest.mark.parametrize("metadata", [{}, {"language": "tlh"}, {"language": 3}])
def test_words_without_a_known_language_are_cut_as_english_ones(
    metadata: dict[str, object],
) -> None:
    assert find_language(metadata, "Hello") == "en"


@pytest.mark.parametrize(
    ("language", "text", "phrase"),
    [
        ("da", "regningerne kom for sent", "regning"),
        ("de", "meine Rechnungen kamen zu spät", "Rechnung"),
        ("de", "die Straße ist gesperrt", "STRASSEN"),
        ("es", "las devoluciones tardan", "devolución"),
        ("fi", "laskun saa verkosta", "laskut"),
        ("fr", "les remboursements de l’hôtel", "remboursement"),
        ("hu", "a házakban lakik", "házak"),
        ("it", "nell'ordine manca un pezzo", "ordini"),
        ("nl", "de rekeningen kloppen niet", "rekening"),
        ("no", "regningene kom for sent", "regning"),
        ("pt", "as devoluções demoram", "devolução"),
        ("ru", "верните деньги за заказы", "заказ"),
        ("sv", "räkningarna kom för sent", "räkning"),
    ],
)
def test_forms_of_a_word_have_one_stem(language: str, text: str, phrase: str) -> None:
    ((start, end),) = find_matches(text, phrase, language)
    (stem,) = count_stems(phrase, [language])
    assert stem in stem_text(text[start:end], language).split()


def test_of_several_languages_a_passage_has_the_nearest() -> None:
    metadata = {"language": ["en-GB", "French", "tlh"]}
    assert find_language(metadata, "I was asked to wait for the next bill") == "en"
    assert find_language(metadata, "J’attends toujours les remboursements") == "fr"
    assert find_language({"language": ["de"]}, "J’attends toujours") == "de"
    assert find_language({"language": []}, "J’attends toujours") == "en"


def test_each_language_leaves_out_its_own_stop_words() -> None:
    assert stem_text("die Frage", "de") == "de/frag"
    assert stem_text("they die", "en") == "die"
    assert stem_text("qu'on l'a dit", "fr") == "fr/a fr/dit"


def test_accents_do_not_matter_however_they_are_encoded() -> None:
    composed, decomposed = "für Gebühr", "fu\u0308r Gebu\u0308hr"
    assert stem_text(composed, "de") == stem_text(decomposed, "de") == "de/gebuhr"


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_term_is_not_taken_for_one_of_another_language(language: str) -> None:
    others = [code for code in LANGUAGES if code != language]
    assert not count_stems("gift kind", [language]).keys() & count_stems("gift kind", others).keys()


@pytest.mark.parametrize(
    ("phrase", "code"),
    [
        ("Ich möchte mein Geld zurück", "de"),
        ("I would like my money back", "en"),
        ("quiero que me devuelvan el dinero", "es"),
        ("Zürich", None),  # a name
        ("no problem", None),  # it could be Spanish, too
    ],
)
def test_the_language_of_a_phrase_is_recognised_if_that_is_certain(
    phrase: str, code: str | None
) -> None:
    assert recognise_language(phrase) == code


def test_only_languages_that_the_other_model_knows_are_promised() -> None:
    described = describe_unknown(["fi", "de"], "slice", ["en"])
    assert described == "slice is made for English; slice-multilingual knows German"
    assert describe_unknown(["fi"], "slice", ["en"]) == "slice is made for English"
