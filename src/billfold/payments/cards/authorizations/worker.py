"""Holds that nobody cleared end when their time is over: a scheduled job, safe to repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from billfold.payments.cards.authorizations import store
from billfold.payments.cards.authorizations.commands import ExpireAuthorization, references_of
from billfold.payments.cards.authorizations.types import Merchant

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import ScheduledJob


async def expire_hold(bank: Bank, job: ScheduledJob) -> None:
    """Release a hold whose time is over."""
    assert job.customer_id is not None
    await release_hold(bank, job.customer_id, job.object_id, due=job.at)


async def release_hold(bank: Bank, customer_id: UUID, authorization_id: UUID, *, due: datetime) -> None:
    """Release a hold that ends by `due`. Raises NotFound."""
    row = await store.get_authorization(bank.pool, customer_id, authorization_id)
    await bank.engine.submit(
        ExpireAuthorization(
            caller=f"cards:{due.isoformat()}",
            key=authorization_id,
            customers=(customer_id,),
            references=references_of(row.card_id, row.network_reference),
            card_id=row.card_id,
            network_reference=row.network_reference,
            merchant=msgspec.json.decode(row.merchant, type=Merchant),
            due=due,
        )
    )
