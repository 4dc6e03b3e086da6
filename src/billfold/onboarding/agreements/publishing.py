"""Publishes a version of the agreements: renders it, stores it for good, and records it in the bank's audit log."""

from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.audit.record import record
from billfold.audit.rules import NewEntry
from billfold.documents.pdf import Unprintable, typeset
from billfold.ledger.types import Origin
from billfold.onboarding.agreements import store
from billfold.onboarding.agreements import texts as agreement_texts
from billfold.onboarding.agreements.store import DocumentRow, VersionRow
from billfold.onboarding.agreements.texts import InvalidAgreements
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection


class Publisher(NamedTuple):
    """The publisher: the bank's customer id and its name, which is printed on every page."""

    bank_id: UUID
    bank_name: str
    vault: Vault
    origin: Origin


class Release(NamedTuple):
    """A version to publish: its texts, when they take effect, and by when they must be accepted."""

    texts: agreement_texts.AgreementTexts
    released_on: date
    required_by: date | None = None
    fonts: tuple[Path, ...] = ()

    @property
    def version(self) -> str:
        """The version's name: its release date."""
        return self.released_on.isoformat()


async def publish(conn: Connection, by: Publisher, release: Release, *, today: date, now: datetime) -> None:
    """Publish a version later than all others, in one transaction. Raises InvalidAgreements.

    `today` is the business day, `now` wall time.
    """
    if release.texts.version not in {None, release.version} or release.texts.release_date not in {
        None,
        release.released_on,
    }:
        raise InvalidAgreements(f"names another version than its release date, {release.version}")
    if release.released_on < today:
        raise InvalidAgreements(f"cannot be in force from {release.version}: today is {today}")
    if release.required_by is not None and release.required_by < release.released_on:
        raise InvalidAgreements(f"cannot be required by {release.required_by}, before it is in force")
    documents = _print_documents(by, release)
    async with conn.transaction():
        await store.lock_versions(conn)
        last = max((each.version for each in await store.list_versions(conn)), default="")
        if release.version <= last:
            raise InvalidAgreements(f"is of {release.version}, not later than the last version, {last}")
        await _insert_release(conn, by, release, documents=documents, now=now)


async def publish_first(conn: Connection, by: Publisher, *, now: datetime) -> None:
    """Publish the texts that ship with the package, unless there are any; in the caller's transaction."""
    await store.lock_versions(conn)
    if await store.list_versions(conn):
        return
    texts = agreement_texts.shipped_texts()
    assert texts.release_date is not None
    release = Release(texts, texts.release_date)
    await _insert_release(conn, by, release, documents=_print_documents(by, release), now=now)


async def _insert_release(
    conn: Connection, by: Publisher, release: Release, *, documents: Sequence[DocumentRow], now: datetime
) -> None:
    row = VersionRow(
        customer_id=by.bank_id,
        version=release.version,
        release_date=release.released_on,
        required_by=release.required_by,
        published_at=now,
    )
    entry = NewEntry(
        customer_id=by.bank_id,
        origin=by.origin,
        action="agreements.published",
        resource_type="agreements",
        resource_id=release.version,
        details={"proves": await store.add_version(conn, row, documents)},
    )
    await record(conn, by.vault, entry, now=now)


def _print_documents(by: Publisher, release: Release) -> list[DocumentRow]:
    return [
        DocumentRow(
            customer_id=by.bank_id,
            version=release.version,
            type=text.type,
            document_no=number,
            title=text.title,
            category=text.category,
            content=msgspec.json.encode(text).decode(),
            pdf=_pdf(text, release.released_on, by.bank_name, fonts=release.fonts),
        )
        for number, text in enumerate(release.texts.documents)
    ]


@lru_cache(maxsize=len(agreement_texts.TYPES))  # each new bank begins with the same texts
def _pdf(text: agreement_texts.AgreementText, day: date, author: str, *, fonts: tuple[Path, ...]) -> bytes:
    facts = {
        "title": text.title,
        "version": day.isoformat(),
        "author": author,
        "day": [day.year, day.month, day.day],
        "blocks": [{"is_heading": is_heading, "text": each} for is_heading, each in text.blocks],
    }
    try:
        return typeset(_template(), facts, made_on=day, fonts=fonts)
    except Unprintable as error:
        raise InvalidAgreements(f"cannot be printed, {text.type}: {error}") from None


def _template() -> bytes:
    return files(__package__).joinpath("agreement.typ").read_bytes()
