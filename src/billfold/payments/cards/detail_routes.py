"""Creates virtual cards, and returns card details encrypted to the client's key."""

from uuid import UUID

from billfold.accounts.notes.store import note_fields
from billfold.audit.record import audited_by
from billfold.http.admission import KEPT
from billfold.http.counts import count_object
from billfold.http.operations import post
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank, limit_usage
from billfold.payments.cards import store
from billfold.payments.cards.commands import PRINTED_NAME_MAX, CardType, CreateVirtualCard
from billfold.payments.cards.processor import EncryptedDetail, PublicKeyError, fingerprint_of, holder_of, processor_of
from billfold.payments.cards.routes import find_card
from billfold.payments.cards.rules import require_not_closed
from billfold.payments.cards.schemas import CardDetail, DetailKey, NewVirtualCard, render_detail
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.ids import command_id

_REFUSES = ("public-key-reused", "rail-not-available")
_READS = 30
"""Maximum number of reads of one card's details in ten minutes."""


@post(
    "/api/v1/service-accounts/{account_id}/virtual-cards/",
    tag="cards",
    refuses=(
        *_REFUSES,
        "customer-not-open",
        "pocket-not-open",
        "pocket-frozen",
        "usage-limit-reached",
        "external-id-taken",
    ),
)
async def create_virtual_card(caller: Caller, bank: Bank, account_id: UUID, data: NewVirtualCard) -> CardDetail:
    """Create virtual card.

    It is ONLINE at once. Its number is returned encrypted to the key, which can be used only once.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    processor = processor_of(bank)
    customer = await holder_of(bank, owner, pocket_id)
    await _claim_public_key(caller, bank, data.public_key)
    await limit_usage(bank, "cards", owner)
    card_id = caller.new_resource_id(bank.seed)
    issued = await processor.issue(card_id, on=et_date(caller.now))
    detail = await _encrypt_detail(bank, card_id, data)
    await bank.engine.submit(
        CreateVirtualCard(
            **caller.command_fields(owner),
            **await note_fields(bank, owner, "card", data),
            card_id=card_id,
            pocket_id=pocket_id,
            name=customer.name[:PRINTED_NAME_MAX],
            last_four=issued.last_four,
            expires_on=issued.expires_on,
        )
    )
    return render_detail(card_id, detail)


@post(
    "/api/v1/service-accounts/{account_id}/virtual-cards/{card_id}/",
    tag="cards",
    status=200,
    refuses=(*_REFUSES, "already-closed"),
)
async def get_virtual_card(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: DetailKey) -> CardDetail:
    """Get virtual card.

    Returns its number, CVV and expiration, encrypted to the key, which can be used only once.
    """
    return await _read_detail(caller, bank, account_id, card_id=card_id, data=data, kind=CardType.VIRTUAL)


@post(
    "/api/v1/service-accounts/{account_id}/physical-cards/{card_id}/",
    tag="cards",
    status=200,
    refuses=(*_REFUSES, "already-closed"),
)
async def get_physical_card(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID, data: DetailKey) -> CardDetail:
    """Get physical card.

    Returns its number, CVV and expiration, encrypted to the key, which can be used only once.
    """
    return await _read_detail(caller, bank, account_id, card_id=card_id, data=data, kind=CardType.PHYSICAL)


async def _read_detail(
    caller: Caller, bank: Bank, account_id: UUID, *, card_id: UUID, data: DetailKey, kind: CardType
) -> CardDetail:
    card = await find_card(caller, bank, account_id, card_id=card_id, only=kind)
    require_not_closed(card)
    await count_object(bank.pool, card_id, "card-detail", limit=_READS, wall=caller.wall)
    await _claim_public_key(caller, bank, data.public_key)
    detail = await _encrypt_detail(bank, card_id, data)
    async with audited_by(caller, bank, card.customer_id, "card.read", resource_id=card_id):
        return render_detail(card_id, detail)


async def _claim_public_key(caller: Caller, bank: Bank, public_key: str) -> None:
    """Reserve the key for this request. Raises InvalidInput; Refused public-key-reused."""
    try:
        fingerprint = fingerprint_of(public_key)
    except PublicKeyError as error:
        raise InvalidInput.at("body", "public_key", msg=str(error)) from None
    request = command_id(caller.key_owner, caller.key)
    if not await store.claim_key(bank.pool, fingerprint, request, wall=caller.wall, since=caller.wall - KEPT):
        raise Refused("public-key-reused", "The key was used in an earlier request.")


async def _encrypt_detail(bank: Bank, card_id: UUID, data: DetailKey | NewVirtualCard) -> EncryptedDetail:
    try:
        return await processor_of(bank).encrypt_detail(card_id, data.public_key, data.padding)
    except PublicKeyError as error:
        raise InvalidInput.at("body", "public_key", msg=str(error)) from None
