"""Prepares a sandbox before it opens: a partner, credentials that work, certificates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pyotp
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from billfold.accounts.customers.partner_customers import PartnerIds, make_partner, new_password, partner_ids
from billfold.cli.context import CliContext, CliError, StepReporter
from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.identity.members.store import add_member, create_user
from billfold.identity.partners import credentials
from billfold.identity.partners import store as partner_store
from billfold.identity.users import store as user_store
from billfold.identity.users import totp
from billfold.identity.users.passwords import set_password
from billfold.identity.users.rules import Role
from billfold.ledger.bank import Bank
from billfold.oauth import clients
from billfold.oauth.clients import record_oauth_client
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.oauth.types import CLIENT_CREDENTIALS, NewClient
from billfold.payments.cards.authorizations.messages import processor_key
from billfold.platform.addresses import own_url_host
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_password
from billfold.platform.database.connection import Connection
from billfold.platform.settings.settings import Settings
from billfold.sandbox import running_sandbox
from billfold.sandbox.card_processor.launch import prepare_card_host
from billfold.sandbox.running_sandbox import SandboxFile, SandboxOAuthClient

PARTNER = "sandbox"
PARTNER_NAME = "Sandbox Partner"
PARTNER_FEATURES = ("wires",)
"""Features of the sandbox's partner that other partners are given one by one."""
_CREDENTIALS = ("username", "password", "shared_secret", "private_key", "kid")


async def prepare_sandbox(
    ground: CliContext,
    settings: Settings,
    dsn: str,
    *,
    card_port: int,
    shared: Mapping[str, str],
    report: StepReporter,
) -> SandboxFile:
    """Create the sandbox's partner, or find it; write `sandbox.json` and return it.

    `shared` are settings of this start that every process uses.
    """
    async with ground.bank(settings, dsn) as bank:
        report("Making certificates")
        partners = {PARTNER, *(row.slug for row in await partner_store.list_partners(bank.pool))}
        tls = ground.certificates(settings, sorted(partners))
        if tls is None:
            raise CliError("A sandbox serves https itself.", "Unset BILLFOLD_BEHIND_PROXY.")
        report("Making a partner")
        previous = running_sandbox.read_sandbox_file(settings.state_dir)
        saved_sandbox = await _new_sandbox_file(
            bank, previous, authority=tls.authority.resolve(), card_port=card_port, shared=shared
        )
    running_sandbox.write_sandbox_file(settings.state_dir, saved_sandbox)
    return saved_sandbox


async def _new_sandbox_file(
    bank: Bank, previous: SandboxFile | None, *, authority: Path, card_port: int, shared: Mapping[str, str]
) -> SandboxFile:
    settings, known_ids = bank.settings, partner_ids(bank.seed, PARTNER)
    customer_id = known_ids.sandbox_customer_id
    host = f"{PARTNER}.{settings.domain}:{settings.port}"
    return SandboxFile(
        base_url=f"https://{own_url_host(settings.host)}:{settings.port}",
        partner_url=f"https://{host}",
        host=host,
        http_url=f"http://{own_url_host(settings.host)}:{settings.http_port}",
        docs_url=f"https://{host}/docs/",
        clock_url=f"https://{host}/api/v1/sandbox/clock/",
        ca_file=str(authority),
        partner=PARTNER,
        **await _credentials(bank, previous),
        **await _people(bank, known_ids, previous),
        customer_id=customer_id,
        own_customer_id=known_ids.own_customer_id,
        facilitation_pocket_id=known_ids.facilitation_pocket_id,
        auth_url=settings.auth_origin,
        customer_url=settings.customer_origin,
        clients=await sandbox_clients(bank, customer_id, previous.clients if previous else ()),
        card_network=prepare_card_host(
            settings, processor_key(settings, bank.seed), trusted_ca=authority, port=card_port
        ),
        settings=dict(shared),
        story=previous.story if previous else "none",
        pocket_ids=previous.pocket_ids if previous else (),
    )


async def _people(bank: Bank, known_ids: PartnerIds, previous: SandboxFile | None) -> dict[str, Any]:
    """Return the people who may sign in: of the customer, of the partner, of the bank."""
    own, bank_id = known_ids.sandbox_customer_id, bank.own_id
    before = (previous.person, previous.colleague, previous.partner_person) if previous else (None, None, None)
    operators = previous.operators[: len(OPERATORS)] if previous else ()
    return {
        "person": await sandbox_person(bank, own, ADA, previous=before[0]),
        "colleague": await sandbox_person(bank, own, BO, previous=before[1]),
        "partner_person": await sandbox_person(bank, known_ids.own_customer_id, PIA, previous=before[2]),
        "operators": tuple(
            [
                await sandbox_person(bank, bank_id, each, previous=known)
                for each, known in zip_longest(OPERATORS, operators)
            ]
        ),
    }


async def _credentials(bank: Bank, previous: SandboxFile | None) -> dict[str, Any]:
    """Return valid credentials: those of the last start, or new ones if they are lost."""
    known = await partner_store.find_partner(bank.pool, PARTNER)
    if known is not None and previous is not None:
        return {name: getattr(previous, name) for name in _CREDENTIALS}
    if known is None:
        created = await make_partner(bank, PARTNER, PARTNER_NAME, username=PARTNER, features=PARTNER_FEATURES)
        password, secret = created.password, created.shared_secret
    else:
        password = new_password()
        async with bank.pool.acquire() as conn:
            secret = await credentials.rotate_secret(conn, bank.vault, known.partner_id, now=wall_now())
    user = await partner_store.find_partner_user(bank.pool, PARTNER)
    assert user is not None
    await credentials.set_partner_password(bank.pool, user.user_id, password)
    private_key, public_key = new_key()
    kid = await credentials.register_partner_key(
        bank.pool, user.user_id, algorithm="ES256", public_pem=public_key, now=wall_now()
    )
    return dict(zip(_CREDENTIALS, (PARTNER, password, secret, private_key, str(kid)), strict=True))


_CONFIRMED_EARLIER = timedelta(minutes=2)
"""The confirming code is an old one, so that every code from now on is still unused."""


class SandboxMember(NamedTuple):
    """A person of the sandbox, and the role in their team."""

    email: str
    first_name: str
    last_name: str
    role: Role


ADA = SandboxMember("ada@dummy-customer.example", "Ada", "Marsh", role="ADMIN")
BO = SandboxMember("bo@dummy-customer.example", "Bo", "Reyes", role="MANAGER")
PIA = SandboxMember("pia@sandbox-partner.example", "Pia", "Novak", role="ADMIN")
OPERATORS = (
    SandboxMember("olga@bank.example", "Olga", "Berg", role="ADMIN"),
    SandboxMember("otto@bank.example", "Otto", "Quist", role="MANAGER"),
)


async def sandbox_person(
    bank: Bank, customer_id: UUID, member: SandboxMember, previous: running_sandbox.SandboxPerson | None
) -> running_sandbox.SandboxPerson:
    """Return valid credentials: those of the last start, or new ones if they are lost."""
    existing = await user_store.find_user_by_email(bank.pool, bank.vault, member.email)
    if existing is not None and previous is not None:
        return previous
    person, now = running_sandbox.SandboxPerson(member.email, new_password(), totp.new_secret()), wall_now()
    password_hash = hash_password(person.password)
    async with bank.pool.acquire() as conn, conn.transaction():
        user_id = (
            existing.user_id if existing else await _create_member(bank, conn, customer_id, member=member, now=now)
        )
        await set_password(conn, user_id, password_hash, now=now)
        await totp.remove_authenticator(conn, user_id)
        await totp.store_pending_authenticator(conn, bank.vault, user_id, secret=person.totp_secret, now=now)
        confirmed_at = now - _CONFIRMED_EARLIER
        code = pyotp.TOTP(person.totp_secret).at(confirmed_at)
        await totp.consume_code(conn, bank.vault, user_id, code=code, now=confirmed_at, pending=True)
    return person


async def _create_member(
    bank: Bank, conn: Connection, customer_id: UUID, *, member: SandboxMember, now: datetime
) -> UUID:
    user_id = await create_user(
        conn, bank.vault, email=member.email, first_name=member.first_name, last_name=member.last_name, now=now
    )
    await conn.execute("UPDATE user_account SET email_verified_at = $2 WHERE user_id = $1", user_id, now)
    await add_member(conn, customer_id, user_id, role=member.role, now=now)
    return user_id


REDIRECT_URIS = ("http://127.0.0.1:8765/callback", "https://localhost:8765/callback")


async def sandbox_clients(
    bank: Bank, customer_id: UUID, previous: Iterable[SandboxOAuthClient] = ()
) -> tuple[SandboxOAuthClient, ...]:
    """Register the sandbox's programs, or find them with the keys of the last start."""
    previous_by_id = {each.client_id: each for each in previous}
    async with bank.pool.acquire() as conn, conn.transaction():
        return tuple(
            [
                await _client(bank, conn, client_id, new, previous=previous_by_id.get(client_id))
                for client_id, new in _clients_to_register(customer_id).items()
            ]
        )


def _clients_to_register(customer_id: UUID) -> dict[str, NewClient]:
    scopes = tuple(SCOPES)
    personal: dict[str, Any] = {"scopes": scopes, "redirect_uris": REDIRECT_URIS}
    service: dict[str, Any] = {
        "grant_types": (CLIENT_CREDENTIALS,),
        "customer_id": customer_id,
        "scopes": tuple(each for each in scopes if each not in PERSONAL_SCOPES),
    }
    proves = "Pushes its requests and proves its key, as new clients do."
    bearer = "May use bearer tokens."
    without_par = "Sandbox application without PAR"
    with_bearer = "Sandbox service user with bearer tokens"
    return {
        "sandbox-fapi2": NewClient(name="Sandbox application", **personal, description=proves),
        "sandbox-documented": NewClient(name=without_par, **personal, profile="documented", description=bearer),
        "sandbox-service": NewClient(name="Sandbox service user", **service, requires_nonce=False),
        "sandbox-bearer": NewClient(name=with_bearer, **service, profile="documented"),
    }


async def _client(
    bank: Bank, conn: Connection, client_id: str, new: NewClient, previous: SandboxOAuthClient | None
) -> SandboxOAuthClient:
    found = await clients.find_client(conn, client_id)
    keys = await clients.list_client_keys(conn, client_id, wall_now())
    if found is not None and previous is not None and previous.kid in {each.key_id for each in keys}:
        return previous
    private, public = new_key()
    client = found or await clients.register_client(conn, new, now=wall_now(), client_id=client_id)
    key = await clients.rotate_client_key(conn, client_id, public, now=wall_now())
    await record_oauth_client(bank, conn, found, action="service_user.key_rotated", key_id=key.key_id)
    return SandboxOAuthClient(
        client_id=client_id,
        profile=client.profile,
        grant_types=client.grant_types,
        redirect_uris=client.redirect_uris,
        scope=" ".join(client.scopes),
        private_key=private,
        kid=key.key_id,
    )


def new_key() -> tuple[str, str]:
    """Return a new ES256 key: the private and the public part, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
