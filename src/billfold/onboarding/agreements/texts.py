"""The texts of a version of the agreements: the file format for operators, and the required content."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.resources import files
from typing import Final, Literal, get_args

import msgspec

Category = Literal["BANK", "BROKERAGE", "GENERAL", "E-SIGN"]
TYPES: Final = (
    "PRIVACY_POLICY",
    "PRIVACY_NOTICE",
    "BUSINESS_CONTINUITY_PLAN",
    "FINANCIAL_STATEMENT",
    "US_TREASURIES_RISK",
    "ELECTRONIC_COMMUNICATIONS",
    "TAX_CERTIFICATION_FOR_US_PERSON",
    "BANK_ACCOUNT",
    "LIMITATIONS",
    "BROKERAGE",
    "CARD",
    "CASHBACK",
    "FORM_CRS",
    "AUTHORIZED_REPRESENTATIVE_CERTIFICATION",
    "TERMS_OF_USE",
    "ELECTRONIC_FUND_TRANSFERS",
    "TRUTH_IN_SAVINGS",
    "FEE_NOTICE",
    "FUNDS_AVAILABILITY",
    "REGULATION_E",
)
"""Every version has one text of each type (contract 1.19)."""
FILE_BYTES_MAX: Final = 4 * 1024**2
TITLE_MAX: Final = 120
TEXT_MAX: Final = 20_000
# Characters that a file can hold and a page cannot show; bidirectional controls could hide text.
_UNREADABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class InvalidAgreements(Exception):
    """A file of agreements cannot be published; the message is a sentence without its subject."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a text under a heading."""

    heading: str
    paragraphs: tuple[str, ...] = ()


class AgreementText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One text; `type` identifies it permanently."""

    type: str
    title: str
    category: Category
    paragraphs: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()

    @property
    def blocks(self) -> list[tuple[bool, str]]:
        """Return headings and paragraphs in order, each with whether it is a heading."""
        found = [(False, each) for each in self.paragraphs]
        for section in self.sections:
            found += [(True, section.heading), *((False, each) for each in section.paragraphs)]
        return found


class AgreementTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All texts of one version. The version is the release date, so neither texts nor file repeat it."""

    documents: tuple[AgreementText, ...]
    version: str | None = None
    release_date: date | None = None


def slug_of(kind: str) -> str:
    """Return the name of a text in URLs: `FORM_CRS` is `form-crs`."""
    return kind.lower().replace("_", "-")


def shipped_texts() -> AgreementTexts:
    """Return the first version, from the package."""
    return read_texts(files(__package__).joinpath("agreements.toml").read_bytes())


def read_texts(raw: bytes) -> AgreementTexts:
    """Return the texts of a TOML file that is complete. Raises InvalidAgreements."""
    if len(raw) > FILE_BYTES_MAX:
        raise InvalidAgreements(f"is larger than {FILE_BYTES_MAX // 1024**2} MB")
    try:
        read = msgspec.toml.decode(raw, type=AgreementTexts)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidAgreements(f"is not as expected: {error}") from None
    for mistake in _mistakes(read.documents):
        raise InvalidAgreements(mistake)
    return read


def to_toml(documents: Sequence[AgreementText]) -> str:
    """Return texts as a file that can be edited and published."""
    return "\n".join(line for each in documents for line in _toml_lines(each)) + "\n"


def _mistakes(documents: Sequence[AgreementText]) -> Iterator[str]:
    types = Counter(each.type for each in documents)
    categories = {each.category for each in documents}
    yield from (f"has a text of unknown type {kind!r}" for kind in types if kind not in TYPES)
    yield from (f"has {types[kind] or 'no'} {kind} instead of one" for kind in TYPES if types[kind] != 1)
    yield from (f"has no text of category {each}" for each in get_args(Category) if each not in categories)
    for each in documents:
        yield from (f"{mistake} in {each.type}" for mistake in _mistakes_in(each))


def _mistakes_in(document: AgreementText) -> Iterator[str]:
    for name, text, most in (
        ("title", document.title, TITLE_MAX),
        *(("heading" if is_heading else "paragraph", text, TEXT_MAX) for is_heading, text in document.blocks),
    ):
        if not text.strip():
            yield f"has an empty {name}"
        if len(text) > most:
            yield f"has a {name} of more than {most:,} characters"
        if found := _UNREADABLE.search(text):
            yield f"has a character that cannot be printed ({found[0]!a})"
    if not any(not is_heading for is_heading, _ in document.blocks):
        yield "has no paragraph"
    if any(not section.paragraphs for section in document.sections):
        yield "has a heading without a paragraph"


def _toml_lines(document: AgreementText) -> Iterator[str]:
    yield "[[documents]]"
    for name in ("type", "title", "category"):
        yield f"{name} = {_quoted(getattr(document, name))}"
    yield from _toml_list(document.paragraphs)
    for section in document.sections:
        yield "[[documents.sections]]"
        yield f"heading = {_quoted(section.heading)}"
        yield from _toml_list(section.paragraphs)
    yield ""


def _toml_list(paragraphs: Sequence[str]) -> Iterator[str]:
    if paragraphs:
        yield "paragraphs = ["
        yield from (f"  {_quoted(each)}," for each in paragraphs)
        yield "]"


def _quoted(text: str) -> str:
    # A JSON string is also a TOML string.
    return json.dumps(text, ensure_ascii=False)
