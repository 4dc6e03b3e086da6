"""Things that the draft of a command has to have, whatever its rule."""

from billfold.ledger.book.draft import PocketColumns, PocketCounters
from billfold.ledger.book.postings import PocketSnapshot, Update

FLOWS = {"inflow", "outflow", "fees", "realised"}


def columns_of(pocket):
    return {name: getattr(pocket, name) for name in PocketColumns.__struct_fields__}


def unwritten(book, before):
    """Yield the columns of pockets that changed and that the draft does not write, and a day that does not move."""
    ended = {row.pocket_id for row in book.draft.rows_of(PocketSnapshot)}
    for key in book.pockets.keys() & before.keys():
        pocket = book.pockets[key]
        changed = {name for name, _ in columns_of(pocket).items() - before[key].items()}
        if changed & FLOWS and pocket.last_activity_date is None and key not in ended:
            yield "last_activity_date"
        if key not in book.draft.changed_pockets:
            yield from changed - set(PocketCounters.__struct_fields__ if key in book.draft.touched_pockets else ())


def fingerprinted(book):
    """Yield the keys of the rows whose new state the outcome of a command has to prove."""
    for kind, made in book.draft:
        if getattr(kind, "fingerprinted", False):
            yield from (getattr(row, kind.key_column or "customer_id") for row in made)
    for row, key, columns in book.draft.rows_of(Update):
        if row.fingerprinted and row.changing and not columns.keys() <= row.changing:
            yield key
