"""A hit in words, as operators read it before they decide."""

from billfold.data_keys.data_key import DataShredded
from billfold.ledger.bank import Bank
from billfold.platform.dates import format_eastern
from billfold.screening import hits, store
from billfold.screening.types import HitRow, ListEntry


async def describe_hit(bank: Bank, row: HitRow) -> list[str]:
    """Return whose name it is, which listed name it is like and why, and what operators noted: a line each."""
    try:
        content = await hits.open_content(bank.pool, bank, row)
    except DataShredded:
        return [f"{row.subject_kind} {row.subject_id} of {row.owner_id} is {row.status}; what it says was destroyed"]
    match, entry = content.match, await store.find_entry(bank.pool, row.entry_uid)
    words = ", ".join(f"{each.given} as {each.listed} ({each.score})" for each in match.words)
    return [
        f"{row.subject_kind} {row.subject_id} of {row.owner_id} is {row.status}",
        f"{content.screened.name} scores {row.score} against {match.listed_name} {match.name_kind}".strip(),
        f"words: {words}",
        *(f"{what}: {points:+}" for what, points in match.evidence.items()),
        *(f"{format_eastern(each.at)} {each.operator}: {each.text}" for each in content.notes),
        *(_entry_lines(entry) if entry else (f"entry {row.entry_uid} is no longer on the list",)),
    ]


def _entry_lines(entry: ListEntry) -> list[str]:
    return [
        f"entry {entry.uid}: {entry.kind}, {', '.join(entry.programs)}",
        *(f"name {each.text} {each.kind}{' (weak)' if each.is_weak else ''}".strip() for each in entry.names),
        *(f"born {each.on or f'{each.from_year} to {each.to_year}'}" for each in entry.births),
        *(f"country {each}" for each in entry.countries),
        *(f"document {each}" for each in entry.ids),
        *([entry.remarks] if entry.remarks else []),
    ]
