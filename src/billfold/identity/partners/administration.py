"""Administration of a partner's secrets and keys by its administrators and operators, recorded in the partner's log."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime

import msgspec

from billfold.audit import record
from billfold.audit.record import AuditedAction
from billfold.identity.partners import credentials, rules, store
from billfold.identity.partners.rules import PartnerPerson, PartnerRow
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.errors import NotFound, Refused


class CredentialChange(msgspec.Struct, frozen=True, kw_only=True):
    """The person who changes credentials of a partner: one of its people, or an operator, and from where."""

    bank: Bank
    partner: PartnerRow
    origin: Origin
    person: PartnerPerson | None = None
    """None for an operator at the command line, who may change every partner's credentials."""


def by_operator(bank: Bank, partner: PartnerRow) -> CredentialChange:
    """Return a change by the operator at the command line."""
    return CredentialChange(bank=bank, partner=partner, origin=Origin.operator())


async def rotate_secret(by: CredentialChange, *, replaces: str | None = None) -> str:
    """Return a new signing secret, shown once; the former stays valid for a day.

    `replaces` is the number of the newest secret that the requester has seen, so that a form sent twice counts once.
    Raises Refused `forbidden`, and `secret-changed` where another is the newest.
    """
    now = wall_now()
    async with _audited(by, "signing_secret.rotated", now) as action:
        _check(by, now)
        newest = await store.lock_newest_secret(action.conn, by.partner.partner_id)
        if replaces not in {None, str(newest)}:
            raise Refused("secret-changed", "Another signing secret has been made since. Reload the page.")
        action.resource_id = str(newest + 1)
        return await credentials.rotate_secret(action.conn, by.bank.vault, by.partner.partner_id, now=now)


async def add_key(by: CredentialChange, username: str, *, algorithm: str, public_pem: str) -> str:
    """Register a public key of a user of the partner, with which assertions for /token/ are signed; return its id.

    Raises `forbidden`, InvalidInput at `username`, `algorithm` or `public_pem`, Refused `duplicate-id`.
    """
    now = wall_now()
    async with _audited(by, "partner_key.added", now, username=username, algorithm=algorithm) as action:
        _check(by, now)
        user = await store.find_partner_user(action.conn, username)
        if user is None or user.partner_id != by.partner.partner_id:
            raise NotFound(f"There is no user {username!r} who may log in.")
        action.resource_id = key_id = await credentials.register_partner_key(
            action.conn, user.user_id, algorithm=algorithm, public_pem=public_pem, now=now
        )
        return key_id


async def revoke_key(by: CredentialChange, key_id: str) -> None:
    """Revoke a key of the partner; tokens of its user end. Raises `forbidden`, NotFound."""
    now = wall_now()
    async with _audited(by, "partner_key.revoked", now, key_id=key_id) as action:
        _check(by, now)
        key = await store.find_partner_key(action.conn, key_id)
        if key is None or key.partner_id != by.partner.partner_id:
            raise NotFound("There is no such key.")
        action.resource_id = key_id
        await credentials.revoke_partner_key(action.conn, key_id, now=now)


def _check(by: CredentialChange, now: datetime) -> None:
    if by.person is not None:
        rules.require_administrator(by.person, now)


def _audited(
    by: CredentialChange, action: str, now: datetime, **details: str
) -> AbstractAsyncContextManager[AuditedAction]:
    return record.audited(by.bank, by.partner.own_customer_id, by.origin, action, details=details, now=now)
