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
"""Maximum number of names of one entry."""
TEXT_MAX: Final = 2_000


class EntryKind(StrEnum):
    """The kind of party an entry names. The CSV files omit it for an entity."""

    INDIVIDUAL = "INDIVIDUAL"
    ENTITY = "ENTITY"
    VESSEL = "VESSEL"
    AIRCRAFT = "AIRCRAFT"


class ListedName(msgspec.Struct, frozen=True, kw_only=True):
    """A name of an entry: its own (`kind` is empty) or another (`a.k.a.`, `f.k.a.`, `n.k.a.`).

    A weak name is so common or vague that its publisher warns of false matches.
    """

    text: str
    kind: str = ""
    is_weak: bool = False


class Birth(msgspec.Struct, frozen=True):
    """Date of birth as far as known: within these years; a date if it is exact."""

    from_year: int
    to_year: int
    on: date | None = None


class ListEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry. `uid` is the publisher's number; `countries` are English names of addresses and nationalities."""

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
    """A complete list as read from its files."""

    published_on: date
    entries: tuple[ListEntry, ...]


class ListRow(msgspec.Struct, frozen=True, kw_only=True):
    """An imported list. `digest` is the SHA-256 of its content, in hexadecimal; `imported_at` is wall time."""

    list_id: UUID
    published_on: date
    digest: str
    entry_count: int
    name_count: int
    is_current: bool
    imported_at: datetime


class InvalidList(Exception):
    """The file is not a sanctions list: the error and its place."""

    def __init__(self, message: str, *, line: int | None = None, uid: object = None, file: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        places = (file, line and f"line {line}", uid and f"entry {uid}")
        self.place = ", ".join(str(each) for each in places if each)

    @override
    def __str__(self) -> str:
        """Return the place and the error."""
        return f"{self.place}: {self.message}" if self.place else self.message


class ScreenedName(msgspec.Struct, frozen=True, kw_only=True):
    """A name to compare with a list, and what else is known; `countries` are English names."""

    name: str
    is_person: bool
    born_on: date | None = None
    countries: tuple[str, ...] = ()


class WordPair(NamedTuple):
    """A word of a name, the listed word that it matches, and their similarity out of 100."""

    given: str
    listed: str
    score: int


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a name resembles: `score` out of 100, the listed name, the matching words, and further evidence.

    `evidence` lists what raised or lowered the score of the words.
    """

    uid: int
    score: int
    listed_name: str
    name_kind: str
    words: tuple[WordPair, ...]
    evidence: dict[str, int]


DECIDED_JOB: Final = "sanctions.decided"
"""Handles a hit that was cleared or confirmed; its object is the hit."""
REASON: Final = "SANCTIONS_SCREENING"
"""The reason that the applicant sees."""


class SubjectKind(StrEnum):
    """The kind of subject whose name was compared."""

    APPLICATION = "APPLICATION"
    RELATED_PARTY = "RELATED_PARTY"
    CUSTOMER = "CUSTOMER"
    COUNTERPARTY = "COUNTERPARTY"


class HitStatus(StrEnum):
    """OPEN until two operators clear it as a false match, or one confirms it."""

    OPEN = "OPEN"
    CLEARED = "CLEARED"
    CONFIRMED = "CONFIRMED"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A screened subject. `owner_id` is the customer or applicant whose data key seals the hit."""

    kind: SubjectKind
    subject_id: UUID
    owner_id: UUID
    name: ScreenedName

    @override
    def __repr__(self) -> str:
        """Return the id, without personal data."""
        return f"Subject({self.kind} {self.subject_id})"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's reason for a decision."""

    operator: str
    text: str
    at: datetime


class HitContent(msgspec.Struct, frozen=True, kw_only=True):
    """The sealed content of a hit: the name as compared, why it resembles the listed one, and the notes."""

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
