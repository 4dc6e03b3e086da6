"""What a sandbox needs before it opens: a partner, credentials that work, certificates."""

from itertools import zip_longest
from pathlib import Path
from typing import Any

from billfold.accounts.customers.partner_customers import PartnerIds, make_partner, new_password, partner_ids
from billfold.cli.context import CliContext, CliError, StepReporter
from billfold.identity.partners import credentials
from billfold.identity.partners import store as partner_store
from billfold.ledger.bank import Bank
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.cards.authorizations.processor_api import processor_key
from billfold.platform.clock import wall_now
from billfold.platform.network.addresses import own_url_host
from billfold.platform.settings.settings import Settings
from billfold.sandbox.card_processor.launch import prepare_card_host
from billfold.sandbox.credentials_file import SandboxFile, read_sandbox_file, write_sandbox_file
from billfold.sandbox.oauth_clients import new_key, sandbox_clients
from billfold.sandbox.users import ADA, BO, OPERATORS, PIA, sandbox_person

PARTNER = "sandbox"
PARTNER_NAME = "Sandbox Partner"
PARTNER_FEATURES = ("wires",)
"""What the sandbox's partner may do that others are given one by one."""
_CREDENTIALS = ("username", "password", "shared_secret", "private_key", "kid")


async def prepare_sandbox(
    ground: CliContext, settings: Settings, dsn: str, *, card_port: int, report: StepReporter
) -> SandboxFile:
    """Make the sandbox's partner, or find it again; write `sandbox.json` and return it."""
    async with ground.bank(settings, dsn) as bank:
        report("Making certificates")
        partners = {PARTNER, *(row.slug for row in await partner_store.list_partners(bank.pool))}
        tls = ground.certificates(settings, sorted(partners))
        if tls is None:
            raise CliError("A sandbox serves https itself.", "Unset BILLFOLD_BEHIND_PROXY.")
        report("Making a partner")
        previous = read_sandbox_file(settings.state_dir)
        saved_sandbox = await _new_sandbox_file(bank, previous, authority=tls.authority.resolve(), card_port=card_port)
    write_sandbox_file(settings.state_dir, saved_sandbox)
    return saved_sandbox


async def _new_sandbox_file(
    bank: Bank, previous: SandboxFile | None, *, authority: Path, card_port: int
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
        story=previous.story if previous else "none",
        pocket_ids=previous.pocket_ids if previous else (),
    )


async def _people(bank: Bank, known_ids: PartnerIds, previous: SandboxFile | None) -> dict[str, Any]:
    """Return who may sign in: of the customer, of the partner, of the bank."""
    own, bank_id = known_ids.sandbox_customer_id, bank_customer_id(bank.seed)
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
    """Return credentials in force: those of the last start, or new ones where they are lost."""
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
