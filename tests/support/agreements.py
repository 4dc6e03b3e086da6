"""Versions of the agreements, as an operator publishes them."""

from datetime import date

import msgspec

from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Origin
from billfold.onboarding.agreements import refresh
from billfold.onboarding.agreements.publishing import Publisher, Release, publish
from billfold.onboarding.agreements.texts import AgreementTexts, shipped_texts
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date

FIRST, SECOND = "2025-06-01", "2025-07-01"


def changed(**fields):
    """Return texts of which the terms of use say something else."""
    documents = [
        msgspec.structs.replace(each, **fields) if each.type == "TERMS_OF_USE" else each
        for each in shipped_texts().documents
    ]
    return AgreementTexts(documents=tuple(documents))


async def release(bank, day=SECOND, *, required_by=None, texts=None):
    """Publish a version, as the operator's command does."""
    by = Publisher(bank_customer_id(bank.seed), "The Bank", bank.vault, Origin.operator())
    made = Release(
        texts or changed(paragraphs=("New.",)),
        date.fromisoformat(day),
        required_by=date.fromisoformat(required_by) if required_by else None,
    )
    async with bank.pool.acquire() as conn:
        await publish(conn, by, made, today=et_date(await bank.now()), now=wall_now())
    await refresh.refresh(bank.pool, bank.terms.agreements)
