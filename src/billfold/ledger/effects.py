"""Effects of commands as they are shown in previews: trades, amounts, days, the outcome, and the payee."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from billfold.ledger.book.draft import Draft
from billfold.ledger.book.postings import TradeEntry, TransactionEntry
from billfold.platform.dates import et_date

_SHOWN = ("status", "reason", "amount")


def effect_of(draft: Draft, before: Mapping[type[Any], int], outcome: Mapping[str, Any], bound: Sequence[str]) -> bytes:
    """Return a digest of what the rows written since `before` do, without ids and instants within a day.

    `bound` is what else must not change.
    """
    trades = draft.rows_of(TradeEntry)[before.get(TradeEntry, 0) :]
    transactions = draft.rows_of(TransactionEntry)[before.get(TransactionEntry, 0) :]
    effect = (
        [
            (t.pocket_id, t.activity, t.incoming, t.cusip, t.units, t.notional, t.tax_basis, t.settles_on)
            for t in trades
        ],
        [(t.pocket_id, t.type, t.direction, t.amount, et_date(t.settles_at)) for t in transactions],
        [outcome.get(name) for name in _SHOWN],
        bound,
    )
    return sha256(msgspec.json.encode(effect)).digest()
