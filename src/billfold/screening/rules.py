"""Compares a name with those of a sanctions list: a score of 0 to 100, and why. Pure.

A name is compared as its words, like payee names: ignoring case, accents, punctuation, order and legal forms.
Words are found through an index of the list's words and their one-letter deletions, so that a word with one
letter mistyped, missing, added or transposed is found without comparing it with all others. Names that share enough
words are compared word by word.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rapidfuzz import fuzz

from billfold.accounts.counterparties.names import are_alike, own_words
from billfold.screening.types import EntryKind, ListedName, ListEntry, Match, ScreenedName, WordPair

_FUZZY_LENGTH: Final = 4
"""A shorter word must match exactly."""
_INITIAL_SCORE: Final = 75
_PARTIAL_SHARE: Final = 0.92
"""Maximum score of a name when the other has additional words: Ali Hassan, Ali Hassan Karim."""
_PARTIAL_WORDS: Final = 2
_CONTAINED_WORDS: Final = 3
"""Minimum number of words for a listed company name to match inside a longer name: two are too common."""
_WEAK_ALIAS, _SAME_DAY, _SAME_YEAR, _OTHER_BIRTH, _SAME_COUNTRY = -10, 8, 4, -15, 3
_BIRTH_YEARS: Final = 1
"""Maximum difference in years between two births that may be the same."""
_WALLET = re.compile(r"\bDigital Currency Address - [A-Z0-9]{2,12} ([A-Za-z0-9:]{20,128})")
_HEXADECIMAL = re.compile(r"0[xX][0-9A-Fa-f]{40}")


def wallet_key(address: str) -> str:
    """Return the address of a wallet in the form used for comparison: case is ignored only in hexadecimal addresses."""
    return address.lower() if _HEXADECIMAL.fullmatch(address) else address


def listed_wallets(entries: Iterable[ListEntry]) -> frozenset[str]:
    """Return the wallets of a list, by `wallet_key`, of any chain: an address has the same owner on all of them."""
    texts = (text for each in entries for text in (*each.ids, each.remarks))
    return frozenset(wallet_key(found) for text in texts for found in _WALLET.findall(text))


class NameIndex:
    """The names of a list, to be compared with many."""

    def __init__(self, entries: Iterable[ListEntry]) -> None:
        self.names: list[tuple[ListEntry, ListedName, tuple[str, ...]]] = []
        self._shared_least: list[int] = []
        """Minimum number of shared words for names with many words; with an initial, one is enough."""
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_variant: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            for name in entry.names:
                words = own_words(name.text)
                self.names.append((entry, name, words))
                self._shared_least.append(0 if _has_initial(words) else len(words))
                for word in set(words):
                    self._by_word[word].append(len(self.names) - 1)
        for word in self._by_word:
            for variant in _variants(word):
                self._by_variant[variant].append(word)

    def find(self, screened: ScreenedName, *, threshold: int) -> list[Match]:
        """Return the entries that a name resembles, the best name of each, highest score first."""
        words = own_words(screened.name)
        best: dict[int, Match] = {}
        for number in self._candidates(words):
            entry, name, others = self.names[number]
            if screened.is_person and entry.kind != EntryKind.INDIVIDUAL:
                continue
            found = _compare(screened, words, entry, name=name, others=others)
            if found.score >= threshold and found.score > (best[entry.uid].score if entry.uid in best else -1):
                best[entry.uid] = found
        return sorted(best.values(), key=lambda each: (-each.score, each.uid))

    def _candidates(self, words: Sequence[str]) -> Iterator[int]:
        """Yield the names that share two words with these, or all words of the shorter one except initials."""
        shared: Counter[int] = Counter()
        for word in set(words):
            shared.update({number for other in self._alike(word) for number in self._by_word[other]})
        least = 0 if _has_initial(words) else min(_PARTIAL_WORDS, len(words))
        enough = self._shared_least
        for number, count in shared.items():
            if count >= least or count >= enough[number]:
                yield number

    def _alike(self, word: str) -> set[str]:
        found = {word} if word in self._by_word else set()
        for variant in _variants(word):
            found.update(other for other in self._by_variant.get(variant, ()) if are_alike(word, other))
        return found


def _variants(word: str) -> set[str]:
    """Return a word, and its variants with one letter deleted."""
    if len(word) < _FUZZY_LENGTH or not word.isalpha():
        return {word}
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}


def _has_initial(words: Sequence[str]) -> bool:
    return any(len(word) == 1 for word in words)


def _compare(
    screened: ScreenedName, words: Sequence[str], entry: ListEntry, *, name: ListedName, others: Sequence[str]
) -> Match:
    pairs = _pairs(words, others)
    score = _name_score(pairs, words, others, is_person=entry.kind == EntryKind.INDIVIDUAL)
    evidence = dict(_evidence(screened, entry))
    if name.is_weak:
        evidence["weak alias"] = _WEAK_ALIAS
    return Match(
        uid=entry.uid,
        score=max(0, min(100, round(score) + sum(evidence.values()))),
        listed_name=name.text,
        name_kind=name.kind,
        words=tuple(pairs),
        evidence=evidence,
    )


def _pairs(words: Sequence[str], others: Sequence[str]) -> list[WordPair]:
    """Return the pairs of matching words, best first, each word once."""
    possible = [
        WordPair(word, other, score) for word in words for other in others if (score := _word_score(word, other))
    ]
    left, right, pairs = Counter(words), Counter(others), []
    for pair in sorted(possible, key=lambda each: (-each.score, each.given, each.listed)):
        if left[pair.given] and right[pair.listed]:
            left[pair.given] -= 1
            right[pair.listed] -= 1
            pairs.append(pair)
    return pairs


def _word_score(word: str, other: str) -> int:
    if word == other:
        return 100
    if min(len(word), len(other)) == 1:
        return _INITIAL_SCORE if word[0] == other[0] else 0
    return round(fuzz.ratio(word, other)) if are_alike(word, other) else 0


def _name_score(pairs: Sequence[WordPair], words: Sequence[str], others: Sequence[str], *, is_person: bool) -> float:
    """Return how much of both names matches, by letters.

    A person's name may omit words; a company's name may contain all words of a listed name that has several,
    and more.
    """
    letters = sum(map(len, words)) + sum(map(len, others))
    same = sum((len(pair.given) + len(pair.listed)) * pair.score for pair in pairs)
    whole = same / letters if letters else 0.0
    fewer = min(len(words), len(others))
    full = [pair for pair in pairs if min(len(pair.given), len(pair.listed)) > 1]
    least = _PARTIAL_WORDS if is_person else _CONTAINED_WORDS
    may_lack = len(pairs) == (fewer if is_person else len(others))
    if may_lack and len(full) >= least:
        paired = sum(len(pair.given) + len(pair.listed) for pair in pairs)
        whole = max(whole, _PARTIAL_SHARE * same / paired)
    return whole


def _evidence(screened: ScreenedName, entry: ListEntry) -> Iterator[tuple[str, int]]:
    """Yield the evidence for or against identity, with its effect on the score."""
    birth = screened.born_on
    if birth is not None and entry.births:
        if any(each.on == birth for each in entry.births):
            yield "same date of birth", _SAME_DAY
        elif any(each.from_year - _BIRTH_YEARS <= birth.year <= each.to_year + _BIRTH_YEARS for each in entry.births):
            yield "same year of birth", _SAME_YEAR
        else:
            yield "another year of birth", _OTHER_BIRTH
    listed = {frozenset(own_words(each)) for each in entry.countries}
    if any(frozenset(own_words(each)) in listed for each in screened.countries):
        yield "same country", _SAME_COUNTRY


def country_names(table: str) -> Mapping[str, str]:
    """Return English names of countries by their codes, from the table `iso3166.tab` of the time zone database."""
    rows = (line.split("\t") for line in table.splitlines() if line and not line.startswith("#"))
    return {code: name.replace("Britain (UK)", "United Kingdom") for code, name in rows}
