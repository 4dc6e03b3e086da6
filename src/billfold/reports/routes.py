"""Downloads, trade confirmations, the public keys of documents, published roots and a customer's own proof."""

from typing import Final, Literal
from uuid import UUID

import msgspec

from billfold.http.caller import Call
from billfold.http.operations import OPEN, SIGNED, get, with_scope
from billfold.http.responses import HttpResponse, StreamedResponse, json_response, redirect
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Db
from billfold.platform.dates import parse_day
from billfold.platform.errors import NotFound
from billfold.reports import confirmations, downloads
from billfold.reports.confirmations import Capacity, capacity_at, get_confirmation
from billfold.reports.downloads import check_url, open_file, temporary_url
from billfold.reports.proofs import signatures
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.store import prove_customer
from billfold.reports.proofs.roots.types import CustomerProof, StoredRoot
from billfold.reports.proofs.signatures import KEYS_PATH

_READS_REPORTS = with_scope("reports.read", "reports")
_PATH = "/downloads/{file_id}"
_REFUSES = ("download-url-invalid", "download-url-expired", "not-found")


@get(_PATH, OPEN, hidden=True, any_query=True, refuses=_REFUSES)
@get(_PATH, OPEN, _READS_REPORTS, hidden=True, any_query=True, refuses=_REFUSES)
async def download_file(
    bank: Bank, file_id: str, customer: str = "", expires: str = "", signature: str = ""
) -> StreamedResponse:
    """Download a file by a temporary URL."""
    ids = check_url(bank.vault, file_id, customer=customer, expires=expires, signature=signature, wall=wall_now())
    file = await downloads.get_file(bank.pool, *ids)
    headers = [
        (b"content-disposition", f'attachment; filename="{file.name}"'.encode()),
        (b"content-length", str(file.size_bytes).encode()),
    ]
    return StreamedResponse(file.media_type, await open_file(bank, file), headers)


_READS_TRADES = with_scope("pockets.read", "trades")


class TradeConfirmation(msgspec.Struct, kw_only=True):
    """A URL of the PDF, valid for ten minutes, and the capacity in which the bank made the trade."""

    url: str
    capacity: Capacity
    object_type: Literal["TradeConfirmation"] = "TradeConfirmation"


@get(
    "/api/v1/accounts/{account_id}/trades/{trade_id}/confirmation/",
    _READS_TRADES,
    status=307,
    tag="confirmations",
    refuses=("not-found",),
)
async def redirect_to_confirmation(
    member: CustomerCaller, bank: Bank, account_id: UUID, trade_id: UUID
) -> HttpResponse:
    """Download a trade confirmation.

    Redirects to the URL of a PDF that is valid for 10 minutes. Maturities have no confirmation.
    """
    return redirect((await _confirm(member, bank, account_id, trade_id=trade_id)).url, status=307)


@get(
    "/api/v1/service-accounts/{account_id}/trades/{trade_id}/confirmation/", tag="confirmations", refuses=("not-found",)
)
async def get_trade_confirmation(caller: Caller, bank: Bank, account_id: UUID, trade_id: UUID) -> TradeConfirmation:
    """Get a trade confirmation.

    Returns the URL of a PDF, valid for 10 minutes, and `capacity`: `AGENT`, or `PRINCIPAL` outside market hours, when
    the bank trades for its own account. Maturities have no confirmation.
    """
    return await _confirm(caller, bank, account_id, trade_id=trade_id)


async def _confirm(caller: Call, bank: Bank, account_id: UUID, *, trade_id: UUID) -> TradeConfirmation:
    owner, pocket_id = await caller.pocket(bank, account_id)
    trade = await confirmations.find_trade(bank.pool, owner, pocket_id, trade_id)
    if trade is None:
        raise NotFound("There is no confirmation of such a trade.")
    capacity = capacity_at(trade.traded_at, bank.calendars)
    file = await get_confirmation(bank, trade, capacity)
    return TradeConfirmation(url=temporary_url(bank.vault, caller.host, file, caller.wall).url, capacity=capacity)


_CACHED: Final = (b"cache-control", b"public, max-age=600")


@get(KEYS_PATH, OPEN, hidden=True, any_query=True)
@get(KEYS_PATH, OPEN, with_scope("pockets.read", "pockets"), hidden=True, any_query=True)
async def show_document_keys(bank: Bank) -> HttpResponse:
    """Return all public keys of the bank's documents as a JWKS, including earlier ones, for `billfold verify FILE`."""
    keys = await signatures.list_public_keys(bank.pool)
    if not keys:
        keys = [(await signatures.get_document_key(bank.pool, bank.vault, await bank.now())).public]
    return json_response(signatures.jwks_document(keys), 200, _CACHED)


ROOT_PATH: Final = "/.well-known/daily-roots/{day}"
_LATEST: Final = "latest"


@get(ROOT_PATH, OPEN, hidden=True, any_query=True)
@get(ROOT_PATH, OPEN, with_scope("pockets.read", "pockets"), hidden=True, any_query=True)
async def show_daily_root(bank: Bank, day: str) -> HttpResponse:
    """Return the signed root of a day, or the `latest`, as a JWS."""
    root = await get_root_of(bank.pool, day)
    age = b"300" if day == _LATEST else b"86400"
    return HttpResponse(
        200, "application/jose", root.jws.encode(), headers=[(b"cache-control", b"public, max-age=" + age)]
    )


@get("/api/v1/customers/{customer_id}/proofs/{day}/", SIGNED, tag="proofs")
@get("/api/v1/proofs/{day}/", with_scope("pockets.read", "pockets"), tag="proofs")
async def get_daily_proof(caller: Caller, bank: Bank, day: str, customer_id: UUID | None = None) -> CustomerProof:
    """Return the proof of the customer's balance at the close of a business day.

    `day` is a date, or `latest`. The proof holds the bank's signed root of that day and the path from the customer's
    leaf to it; `tools/check_proof.py` checks it with the public keys of `/.well-known/document-keys.json`.
    """
    owner = await caller.owner(bank, customer_id)
    root = await get_root_of(bank.pool, day)
    return await prove_customer(bank.pool, bank, root, owner)


async def get_root_of(conn: Db, day: str) -> StoredRoot:
    """Return the root of a day, or the `latest`. Raises NotFound."""
    try:
        return await store.get_root(conn, None if day == _LATEST else parse_day(day))
    except ValueError:
        raise NotFound("There is no such day.") from None
