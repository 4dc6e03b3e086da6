"""Similarity of names, and the speed of comparing many with a long list."""

from datetime import date
from random import Random

import pytest

from billfold.screening.rules import NameIndex, country_names
from billfold.screening.types import Birth, EntryKind, ListedName, ListEntry, ScreenedName

PERSON = ListEntry(
    uid=1,
    kind=EntryKind.INDIVIDUAL,
    names=(
        ListedName(text="VARKASHIN, Zoltan Ardeshir"),
        ListedName(text="Tellemonde MÜLLER", kind="a.k.a."),
        ListedName(text="The Ferryman", kind="a.k.a.", is_weak=True),
    ),
    births=(Birth(1962, 1962, date(1962, 10, 7)),),
    countries=("Syria", "Korea, North"),
)
COMPANY = ListEntry(uid=2, kind=EntryKind.ENTITY, names=(ListedName(text="QUELLMAR SHIPPING COMPANY"),))
FOUNDRY = ListEntry(uid=3, kind=EntryKind.ENTITY, names=(ListedName(text="BRACHMOND STEEL FOUNDRY LTD"),))
INDEX = NameIndex([PERSON, COMPANY, FOUNDRY])
THRESHOLD = 85


def scores(name, *, is_person=True, **known):
    found = INDEX.find(ScreenedName(name=name, is_person=is_person, **known), threshold=THRESHOLD)
    return [(each.uid, each.score) for each in found]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Zoltan Ardeshir Varkashin", [(1, 100)]),
        ("ardeshir VARKASHIN zoltán", [(1, 100)]),
        ("Zoltan Varkashin", [(1, 92)]),
        ("Zoltan A. Varkashin", [(1, 94)]),
        ("Zoltan Varkashyn", [(1, 86)]),
        ("Tellemonde Mueller", [(1, 97)]),
        ("Ferryman", [(1, 90)]),
        ("Zoltan Smith", []),
        ("Z. Varkashin", []),
        ("Ardeshir Zoltan", [(1, 92)]),
        ("Varkashin", []),
        ("Quellmar Shipping", []),
    ],
)
def test_screening_matches_names_despite_order_accents_initials_and_typos(name, expected):
    assert scores(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Quellmar Shipping LLC", 100),
        ("QUELMAR Shipping", 97),
        ("Quellmar Trading", None),
        ("Shipping Co", None),
        ("Acme Quellmar Shipping Deliveries", None),
        ("The Brachmond Steel Foundry of the North Atlantic", 92),
        ("Brachmond Steel Trading", None),
        ("Zoltan Varkashin", 92),
    ],
)
def test_screening_ignores_the_legal_form_of_a_company(name, expected):
    assert [score for _, score in scores(name, is_person=False)] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"born_on": date(1962, 10, 7)}, [(1, 100)]),
        ({"born_on": date(1963, 1, 1)}, [(1, 96)]),
        ({"born_on": date(1990, 1, 1)}, []),
        ({"countries": ("Korea (North)",)}, [(1, 95)]),
        ({"countries": ("Cuba",)}, [(1, 92)]),
    ],
)
def test_a_birth_date_and_a_country_add_screening_evidence(known, expected):
    assert scores("Zoltan Varkashin", **known) == expected


def test_a_screening_match_explains_its_name_words_and_evidence():
    screened = ScreenedName(name="Mueller, Tellemonde", is_person=True, born_on=date(1962, 10, 7), countries=("Syria",))
    (match,) = INDEX.find(screened, threshold=THRESHOLD)
    assert (match.listed_name, match.name_kind) == ("Tellemonde MÜLLER", "a.k.a.")
    assert match.words == (("tellemonde", "tellemonde", 100), ("mueller", "muller", 92))
    assert match.evidence == {"same date of birth": 8, "same country": 3}


def test_country_names_are_derived_from_their_codes():
    names = country_names("# codes\nGB\tBritain (UK)\nKP\tKorea (North)\n")
    assert names == {"GB": "United Kingdom", "KP": "Korea (North)"}


@pytest.mark.parametrize("seed", range(3))
def test_every_listed_name_is_matched_with_one_letter_missing(seed):
    draw = Random(seed)
    letters = "abcdefghijklmnoprstuvz"
    words = ["".join(draw.choices(letters, k=draw.randint(6, 10))) for _ in range(300)]
    entries = [
        ListEntry(uid=n, kind=EntryKind.INDIVIDUAL, names=(ListedName(text=" ".join(draw.sample(words, 3))),))
        for n in range(500)
    ]
    index = NameIndex(entries)
    for entry in draw.sample(entries, 50):
        given = entry.names[0].text.split()
        draw.shuffle(given)
        place = draw.randrange(len(given[0]))
        given[0] = given[0][:place] + given[0][place + 1 :]
        found = index.find(ScreenedName(name=" ".join(given), is_person=True), threshold=THRESHOLD)
        assert entry.uid in {each.uid for each in found}
