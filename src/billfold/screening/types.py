"""Sanctions lists and their entries."""

from datetime import date, datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from typing_extensions import override

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""OFAC's list has 28 MB as XML."""
ENTRIES_MAX: Final = 250_000
NAMES_MAX: Final = 1_000
"""How many names one entry may have."""
TEXT_MAX: Final = 2_000


class EntryKind(StrEnum):
    """Whom or what an entry is about. The CSV files leave it out for an entity."""

    INDIVIDUAL = "INDIVIDUAL"
    ENTITY = "ENTITY"
    VESSEL = "VESSEL"
    AIRCRAFT = "AIRCRAFT"


class ListedName(msgspec.Struct, frozen=True, kw_only=True):
    """A name of an entry: its own (`kind` is empty) or another (`a.k.a.`, `f.k.a.`, `n.k.a.`).

    A weak one is so common or vague that its publisher warns of false matches.
    """

    text: str
    kind: str = ""
    is_weak: bool = False


class Birth(msgspec.Struct, frozen=True):
    """When somebody was born, as far as it is known: within these years; on a day if it is exact."""

    from_year: int
    to_year: int
    on: date | None = None


class ListEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry. `uid` is the publisher's number of it; `countries` are English names of addresses and nationalities."""

    uid: int
    kind: EntryKind
    names: tuple[ListedName, ...]
    programs: tuple[str, ...] = ()
    births: tuple[Birth, ...] = ()
    countries: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Kinds and numbers of documents, for people who compare by eye."""
    remarks: str = ""


class SanctionsList(msgspec.Struct, frozen=True, kw_only=True):
    """A whole list as it was read."""

    published_on: date
    entries: tuple[ListEntry, ...]


class ListRow(msgspec.Struct, frozen=True, kw_only=True):
    """A list that was imported. `digest` is the SHA-256 of what it says, in hexadecimal; `imported_at` is wall time."""

    list_id: UUID
    published_on: date
    digest: str
    entry_count: int
    name_count: int
    is_current: bool
    imported_at: datetime


class InvalidList(Exception):
    """A file is no sanctions list: what is wrong, and where."""

    def __init__(self, message: str, *, line: int | None = None, uid: object = None, file: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        places = (file, line and f"line {line}", uid and f"entry {uid}")
        self.place = ", ".join(str(each) for each in places if each)

    @override
    def __str__(self) -> str:
        """Return where it is, and what is wrong."""
        return f"{self.place}: {self.message}" if self.place else self.message


class ScreenedName(msgspec.Struct, frozen=True, kw_only=True):
    """A name that is compared with a list, and what else is known; `countries` are English names."""

    name: str
    is_person: bool
    born_on: date | None = None
    countries: tuple[str, ...] = ()


class WordPair(NamedTuple):
    """A word of a name, the one of the listed name that it stands for, and how alike they are, of 100."""

    given: str
    listed: str
    score: int


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a name is like: `score` of 100, by which of its names, which words, and what else speaks for it.

    `evidence` says what was added to the score of the words, or taken off it.
    """

    uid: int
    score: int
    listed_name: str
    name_kind: str
    words: tuple[WordPair, ...]
    evidence: dict[str, int]


DECIDED_JOB: Final = "sanctions.decided"
"""Does what follows from a hit that was cleared or confirmed; its object is the hit."""
REASON: Final = "SANCTIONS_SCREENING"
"""What the applicant sees of it."""


class SubjectKind(StrEnum):
    """Whose name was compared."""

    APPLICATION = "APPLICATION"
    RELATED_PARTY = "RELATED_PARTY"
    CUSTOMER = "CUSTOMER"
    COUNTERPARTY = "COUNTERPARTY"


class HitStatus(StrEnum):
    """OPEN until two operators say that it is somebody else, or one that it is not."""

    OPEN = "OPEN"
    CLEARED = "CLEARED"
    CONFIRMED = "CONFIRMED"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Who is screened. `owner_id` is the customer, or who may become one: their data key seals the hit."""

    kind: SubjectKind
    subject_id: UUID
    owner_id: UUID
    name: ScreenedName

    @override
    def __repr__(self) -> str:
        """Return the id and nothing personal."""
        return f"Subject({self.kind} {self.subject_id})"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Why an operator decided as they did."""

    operator: str
    text: str
    at: datetime


class HitContent(msgspec.Struct, frozen=True, kw_only=True):
    """What is sealed of a hit: the name as it was compared, why it is like the listed one, and the notes."""

    screened: ScreenedName
    match: Match
    notes: tuple[Note, ...] = ()


class HitRow(msgspec.Struct, frozen=True, kw_only=True):
    """A hit as stored; `customer_id` is the bank itself, whose audit log proves the row. Business time."""

    customer_id: UUID
    hit_id: UUID
    subject_kind: SubjectKind
    subject_id: UUID
    owner_id: UUID
    entry_uid: int
    score: int
    status: HitStatus
    cleared_by: tuple[str, ...]
    confirmed_by: str | None
    content: bytes
    found_at: datetime
    decided_at: datetime | None
