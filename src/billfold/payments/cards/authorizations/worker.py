"""Holds that nobody cleared end when their time is over, and what was approved too late: jobs, safe to repeat."""

from datetime import datetime
from uuid import UUID

import msgspec

from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.cards.authorizations import commands, store
from billfold.payments.cards.authorizations.messages import Message, command_of


async def expire_hold(bank: Bank, job: ScheduledJob) -> None:
    """Release a hold whose time is over."""
    assert job.customer_id is not None
    await release_hold(bank, job.customer_id, job.object_id, due=job.at)


async def reverse_late(bank: Bank, job: ScheduledJob) -> None:
    """Reverse what a message was approved after it had been declined; one that is not decided yet is decided first."""
    assert job.customer_id is not None
    message = msgspec.json.decode((await store.get_late(bank.pool, job.object_id)).message, type=Message)
    command = command_of(message, job.customer_id)
    assert isinstance(command, commands.AuthorizeCard | commands.IncrementAuthorization)
    cents = (await bank.engine.submit(command)).outcome["approved_amount"]
    if cents:
        await bank.engine.submit(
            commands.ReverseAuthorization(
                caller=commands.LATE,
                key=command.key,
                customers=command.customers,
                references=command.references,
                card_id=command.card_id,
                network_reference=command.network_reference,
                merchant=command.merchant,
                amount=cents,
                is_late=isinstance(command, commands.AuthorizeCard),
            )
        )


async def release_hold(bank: Bank, customer_id: UUID, authorization_id: UUID, *, due: datetime) -> None:
    """Release a hold that ends by `due`. Raises NotFound."""
    row = await store.get_authorization(bank.pool, customer_id, authorization_id)
    await bank.engine.submit(
        commands.ExpireAuthorization(
            caller=f"cards:{due.isoformat()}",
            key=authorization_id,
            customers=(customer_id,),
            references=commands.references_of(row.card_id, row.network_reference),
            card_id=row.card_id,
            network_reference=row.network_reference,
            merchant=msgspec.json.decode(row.merchant, type=commands.Merchant),
            due=due,
        )
    )
