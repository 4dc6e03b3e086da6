"""Compares a name with that of an account's owner: equal, close or another. Pure.

Meaningless variation is ignored: case, accents, punctuation, word order, common abbreviations, and a legal form that
only one side writes. A different legal form is a close match, different digits are another company. Look-alike letters
of another script are different letters.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from billfold.accounts.counterparties.types import format_name

CLOSE_RATIO: Final = 85
"""Minimum similarity of sorted words, of 100, to count as one name with typos."""
_MISTYPED_LENGTH: Final = 2
"""A shorter word, such as the letter or number of a fund, counts as different, not as a typo."""
_WHOLE_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
"""Letters that Unicode does not decompose into a base letter and an accent."""
_ROMAN_NUMBER = re.compile(r"[ivx]+")
_WORD = re.compile(r"\w+")
_JOINED = re.compile(r"['\u2018\u2019\u02bc.]")
"""Characters within words: O'Brien, L.L.C."""
_ABBREVIATIONS = {
    "assn": "association",
    "assoc": "associates",
    "bros": "brothers",
    "ctr": "center",
    "dept": "department",
    "dr": "doctor",
    "intl": "international",
    "mfg": "manufacturing",
    "mgmt": "management",
    "natl": "national",
    "st": "saint",
    "svc": "service",
    "svcs": "services",
    "tech": "technology",
    "univ": "university",
}
_LEGAL_FORMS = {
    "ag": "ag",
    "bv": "bv",
    "co": "company",
    "company": "company",
    "corp": "corporation",
    "corporation": "corporation",
    "gmbh": "gmbh",
    "inc": "corporation",
    "incorporated": "corporation",
    "kg": "kg",
    "limited": "limited",
    "llc": "llc",
    "llp": "llp",
    "lp": "lp",
    "ltd": "limited",
    "na": "na",
    "nv": "nv",
    "pbc": "pbc",
    "pc": "pc",
    "plc": "plc",
    "pllc": "pllc",
    "pte": "pte",
    "pty": "pty",
    "sa": "sa",
    "sarl": "sarl",
    "sas": "sas",
    "spa": "spa",
    "srl": "srl",
}
"""Legal forms, each with its normal spelling."""
_IGNORED = frozenset({"and", "mr", "mrs", "ms", "of", "the"})


class NameMatch(StrEnum):
    """The result of comparing a name with the owner's registered name."""

    MATCH = "MATCH"
    CLOSE_MATCH = "CLOSE_MATCH"
    NO_MATCH = "NO_MATCH"


def match_payee(given: Mapping[str, str], registered: str) -> NameMatch:
    """Compare a counterparty's name with the registered one. A person without middle names is a close match."""
    name, words = format_name(given), _words(registered)
    outcome = match_names(name, registered)
    first, *middle, last = words if words[1:] else ["", ""]
    if outcome != NameMatch.NO_MATCH or given.get("type") != "individual" or not middle or _split_legal_forms(words)[1]:
        return outcome
    fits = match_names(name, f"{first} {last}") != NameMatch.NO_MATCH
    return NameMatch.CLOSE_MATCH if fits else NameMatch.NO_MATCH


def match_names(given: str, registered: str) -> NameMatch:
    """Compare a given name with the registered one."""
    one, other = _words(given), _words(registered)
    if not one or not other or _scripts(given) != _scripts(registered):
        return NameMatch.NO_MATCH
    own, others = _split_legal_forms(one), _split_legal_forms(other)
    same_form = not own[1] or not others[1] or own[1] == others[1]
    if own[0] == others[0] and same_form:
        return NameMatch.MATCH
    if own[0] == others[0]:
        return NameMatch.CLOSE_MATCH
    if _digits(own[0]) != _digits(others[0]) or not same_form:
        return NameMatch.NO_MATCH
    close = _is_mistyped(own[0], others[0]) or _initials_match(own[0], others[0])
    return NameMatch.CLOSE_MATCH if close else NameMatch.NO_MATCH


def own_words(name: str) -> tuple[str, ...]:
    """Return the normalized words of a name, sorted, without legal forms."""
    return tuple(_split_legal_forms(_words(name))[0])


def mask_name(name: str) -> str:
    """Return a name with only the first letter of each word visible: "N*** T***"."""
    return " ".join(f"{word[0]}***" for word in name.split())


def _words(name: str) -> list[str]:
    """Return the normalized words of a name, without punctuation."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold().translate(_WHOLE_LETTERS))
    plain = "".join(each for each in plain if not unicodedata.combining(each) and unicodedata.category(each) != "Cf")
    words = _WORD.findall(_JOINED.sub("", plain).replace("_", " "))
    return [_ABBREVIATIONS.get(word, word) for word in words if word not in _IGNORED] or words


def _split_legal_forms(words: list[str]) -> tuple[list[str], set[str]]:
    """Return the words of a name, sorted, and its legal forms; if there are only legal forms, they stay words."""
    own = sorted(word for word in words if word not in _LEGAL_FORMS)
    if not own:
        return sorted(words), set()
    return own, {_LEGAL_FORMS[word] for word in words if word in _LEGAL_FORMS}


def _digits(words: list[str]) -> list[str]:
    return [word for word in words if any(each.isdigit() for each in word)]


def _is_mistyped(one: list[str], other: list[str]) -> bool:
    """Return whether names are similar as a whole and word by word: in long names one other word makes another name."""
    short, long = [w for w in one if w not in other], [w for w in other if w not in one]
    return (
        len(one) == len(other)
        and fuzz.ratio(" ".join(one), " ".join(other)) >= CLOSE_RATIO
        and all(any(are_alike(word, each) for each in long) for word in short)
        and all(any(are_alike(word, each) for each in short) for word in long)
    )


def are_alike(word: str, other: str) -> bool:
    """Return whether a word is a mistyped form of another."""
    if min(len(word), len(other)) < _MISTYPED_LENGTH or (_ROMAN_NUMBER.fullmatch(word + other)):
        return False
    return OSA.distance(word, other) <= 1 or fuzz.ratio(word, other) >= CLOSE_RATIO


def _initials_match(one: list[str], other: list[str]) -> bool:
    """Return whether two names of persons differ only in an abbreviated first name: J Smith, John Smith."""
    short, long = [w for w in one if w not in other], [w for w in other if w not in one]
    return (
        len(one) == len(other) > len(short) == len(long) == 1
        and min(len(short[0]), len(long[0])) == 1
        and short[0][0] == long[0][0]
    )


def _scripts(name: str) -> set[str]:
    """Return the scripts of a name's letters: LATIN, CYRILLIC, CJK."""
    letters = (each for each in unicodedata.normalize("NFKC", _JOINED.sub("", name)) if each.isalpha())
    return {unicodedata.name(each, "UNKNOWN").partition(" ")[0] for each in letters}
