"""What a sandbox needs before it opens: a partner, credentials that work, certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from billfold.access.partners import credentials
from billfold.access.partners import store as partner_store
from billfold.access.partners.cli import make_partner, new_password
from billfold.access.partners.customers import partner_ids
from billfold.cli.context import CliContext, CliError, StepReporter
from billfold.platform.clock import wall_now
from billfold.sandbox.credentials_file import SandboxFile, read_sandbox_file, write_sandbox_file
from billfold.sandbox.oauth_clients import sandbox_clients
from billfold.sandbox.users import ADA, BO, sandbox_person

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.settings.settings import Settings

PARTNER = "sandbox"
PARTNER_NAME = "Sandbox Partner"
PARTNER_FEATURES = ("wires",)
"""What the sandbox's partner may do that others are given one by one."""


async def prepare_sandbox(ground: CliContext, settings: Settings, dsn: str, report: StepReporter) -> SandboxFile:
    """Make the sandbox's partner, or find it again; write `sandbox.json` and return it."""
    async with ground.bank(settings, dsn) as bank:
        report("Making certificates")
        partners = {PARTNER, *(row.slug for row in await partner_store.list_partners(bank.pool))}
        tls = ground.certificates(settings, sorted(partners))
        if tls is None:
            raise CliError("A sandbox serves https itself.", "Unset BILLFOLD_BEHIND_PROXY.")
        report("Making a partner")
        previous = read_sandbox_file(settings.state_dir)
        saved_sandbox = await _new_sandbox_file(bank, previous, str(tls.authority.resolve()))
    write_sandbox_file(settings.state_dir, saved_sandbox)
    return saved_sandbox


async def _new_sandbox_file(bank: Bank, previous: SandboxFile | None, ca_file: str) -> SandboxFile:
    username, password, secret, private_key, kid = await _credentials(bank, previous)
    settings, known_ids = bank.settings, partner_ids(bank.seed, PARTNER)
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
            bank, known_ids.sandbox_customer_id, ADA, previous=None if previous is None else previous.person
        ),
        colleague=await sandbox_person(
            bank, known_ids.sandbox_customer_id, BO, previous=None if previous is None else previous.colleague
        ),
        customer_id=known_ids.sandbox_customer_id,
        own_customer_id=known_ids.own_customer_id,
        facilitation_pocket_id=known_ids.facilitation_pocket_id,
        auth_url=settings.auth_origin,
        customer_url=settings.customer_origin,
        clients=await sandbox_clients(
            bank, known_ids.sandbox_customer_id, () if previous is None else previous.clients
        ),
        story="none" if previous is None else previous.story,
        pocket_ids=() if previous is None else previous.pocket_ids,
    )


async def _credentials(bank: Bank, previous: SandboxFile | None) -> tuple[str, str, str, str, str]:
    """Return credentials in force: those of the last start, or new ones where they are lost."""
    known = await partner_store.find_partner(bank.pool, PARTNER)
    if known is not None and previous is not None:
        return (previous.username, previous.password, previous.shared_secret, previous.private_key, previous.kid)
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
    private_key, public_key = _new_key()
    kid = await credentials.register_partner_key(
        bank.pool, user.user_id, algorithm="ES256", public_pem=public_key, now=wall_now()
    )
    return PARTNER, password, secret, private_key, kid


def _new_key() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
