"""What a sandbox needs before it opens: a partner, credentials that work, certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from billfold.access.partners import credentials
from billfold.access.partners import store as partner_store
from billfold.access.partners.cli import make_partner, new_password
from billfold.cli.context import CannotGoOn, Ground, Report
from billfold.platform.clock import wall_now
from billfold.sandbox.credentials_file import SandboxFile, read_sandbox_file, write_sandbox_file
from billfold.sandbox.oauth_clients import sandbox_clients
from billfold.sandbox.users import ADA, BO, sandbox_person
from billfold.wiring.initialize import partner_places

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.settings.settings import Settings

PARTNER = "sandbox"
PARTNER_NAME = "Sandbox Partner"
FEATURES = ("wires",)
"""What the sandbox's partner may do that others are given one by one."""


async def settle_in(ground: Ground, settings: Settings, dsn: str, report: Report) -> SandboxFile:
    """Make the sandbox's partner, or find it again; write `sandbox.json` and return it."""
    async with ground.bank(settings, dsn) as bank:
        report("Making certificates")
        partners = {PARTNER, *(row.slug for row in await partner_store.list_partners(bank.pool))}
        tls = ground.certificates(settings, sorted(partners))
        if tls is None:
            raise CannotGoOn("A sandbox serves https itself.", "Unset BILLFOLD_BEHIND_PROXY.")
        report("Making a partner")
        kept = read_sandbox_file(settings.state_dir)
        home = await _home(bank, kept, str(tls.authority.resolve()))
    write_sandbox_file(settings.state_dir, home)
    return home


async def _home(bank: Bank, kept: SandboxFile | None, ca_file: str) -> SandboxFile:
    username, password, secret, private_key, kid = await _credentials(bank, kept)
    settings, places = bank.settings, partner_places(bank.seed, PARTNER)
    host = f"{PARTNER}.{settings.domain}:{settings.port}"
    return SandboxFile(
        base_url=f"https://{settings.host}:{settings.port}",
        partner_url=f"https://{host}",
        host=host,
        http_url=f"http://{settings.host}:{settings.http_port}",
        docs_url=f"https://{host}/docs/",
        clock_url=f"https://{host}/api/v1/sandbox/clock/",
        ca_file=ca_file,
        partner=PARTNER,
        username=username,
        password=password,
        shared_secret=secret,
        private_key=private_key,
        kid=kid,
        person=await sandbox_person(
            bank, places.dummy_customer_id, ADA, None if kept is None else kept.person
        ),
        colleague=await sandbox_person(
            bank, places.dummy_customer_id, BO, None if kept is None else kept.colleague
        ),
        customer_id=places.dummy_customer_id,
        own_customer_id=places.own_customer_id,
        facilitation_pocket_id=places.facilitation_pocket_id,
        auth_url=settings.auth_origin,
        customer_url=settings.customer_origin,
        clients=await sandbox_clients(
            bank, places.dummy_customer_id, () if kept is None else kept.clients
        ),
        story="none" if kept is None else kept.story,
        pocket_ids=() if kept is None else kept.pocket_ids,
    )


async def _credentials(bank: Bank, kept: SandboxFile | None) -> tuple[str, str, str, str, str]:
    """Return credentials in force: those of the last start, or new ones where they are lost."""
    known = await partner_store.find_partner(bank.pool, PARTNER)
    if known is not None and kept is not None:
        return kept.username, kept.password, kept.shared_secret, kept.private_key, kept.kid
    if known is None:
        made = await make_partner(bank, PARTNER, PARTNER_NAME, PARTNER, features=FEATURES)
        password, secret = made.password, made.shared_secret
    else:
        password = new_password()
        async with bank.pool.acquire() as conn:
            secret = await credentials.rotate_secret(
                conn, bank.vault, known.partner_id, now=wall_now()
            )
    user = await partner_store.find_user(bank.pool, PARTNER)
    assert user is not None
    await credentials.set_password(bank.pool, user.user_id, password)
    private_key, public_key = _new_key()
    kid = await credentials.add_key(
        bank.pool, user.user_id, algorithm="ES256", public_pem=public_key, now=wall_now()
    )
    return PARTNER, password, secret, private_key, kid


def _new_key() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
