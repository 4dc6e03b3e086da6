"""Published roots, and a customer's own proof."""

from __future__ import annotations

from datetime import date
from typing import Final
from uuid import UUID

from billfold.identity.partners.caller import (Caller)
from billfold.http.operations import OPEN, SIGNED, get, with_scope
from billfold.http.responses import HttpResponse
from billfold.ledger.bank import Bank
from billfold.platform.dates import parse_day
from billfold.platform.errors import NotFound
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.proofs import prove_customer
from billfold.reports.proofs.roots.types import CustomerProof

ROOT_PATH: Final = "/.well-known/daily-roots/{day}"
_LATEST: Final = "latest"


@get(ROOT_PATH, OPEN, hidden=True, any_query=True)
@get(ROOT_PATH, OPEN, with_scope("pockets.read", "pockets"), hidden=True, any_query=True)
async def show_daily_root(bank: Bank, day: str) -> HttpResponse:
    """Return the signed root of a day, or of the `latest`, as a JWS."""
    root = await store.get_root(bank.pool, None if day == _LATEST else _day(day))
    age = b"300" if day == _LATEST else b"86400"
    return HttpResponse(
        200, "application/jose", root.jws.encode(), headers=[(b"cache-control", b"public, max-age=" + age)]
    )


@get("/api/v1/customers/{customer_id}/proofs/{day}/", SIGNED, tag="proofs")
@get("/api/v1/proofs/{day}/", with_scope("pockets.read", "pockets"), tag="proofs")
async def get_daily_proof(caller: Caller, bank: Bank, day: str, customer_id: UUID | None = None) -> CustomerProof:
    """Return what proves the balance of the customer at the close of a business day.

    `day` is a date, or `latest`. The proof holds the bank's signed root of that day and the way from the customer's
    leaf to it; `tools/check_proof.py` checks it with the public keys of `/.well-known/document-keys.json`.
    """
    owner = await caller.owner(bank, customer_id)
    root = await store.get_root(bank.pool, None if day == _LATEST else _day(day))
    return await prove_customer(bank.pool, bank, root, owner)


def _day(text: str) -> date:
    try:
        return parse_day(text)
    except ValueError:
        raise NotFound("There is no such day.") from None
