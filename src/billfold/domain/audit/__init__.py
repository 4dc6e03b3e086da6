"""The audit log: who did what, when, from where, and whether it was let.

Owns the entries of every customer, their chain and its seals; entries are added in the transaction
of their cause. Never changes or removes one, never decides who may read them, and never keeps a
secret or the number of a card or of a person.
"""

from billfold.domain.audit import seals
from billfold.domain.audit.reads import all_chains, list_entries
from billfold.domain.audit.rules import START, follows, scrubbed
from billfold.domain.audit.types import Entry, Head, Origin, Recorded, Seal, Wanted
from billfold.domain.audit.writes import Deed, deed, record, record_all

__all__ = [
    "START",
    "Deed",
    "Entry",
    "Head",
    "Origin",
    "Recorded",
    "Seal",
    "Wanted",
    "all_chains",
    "deed",
    "follows",
    "list_entries",
    "record",
    "record_all",
    "scrubbed",
    "seals",
]
