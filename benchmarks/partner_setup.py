"""A partner that calls the bank under load: its user, its token, and its customers' payees."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from benchmarks.dataset import PARTNER, customer_of, pocket_of, submit_commands
from benchmarks.load_generator import Credentials
from billfold.access.partners import credentials
from billfold.accounts.commands import EnrolCustomer
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.crypto import new_token
from billfold.platform.ids import command_id, derive

SLUG = "bench"
LIMIT_PER_MINUTE = 1_000_000
"""The limiter is on the path of every request; only its limit is raised."""

_CALLER = "bench"


async def create_partner(bank: Bank) -> Credentials:
    """Make the partner whose customers everybody is, and return what it calls with."""
    own = derive(bank.seed, command_id(_CALLER, "partner"), 1)
    await submit_commands(
        bank,
        [
            EnrolCustomer(
                caller=_CALLER,
                key=command_id("enrol", "partner"),
                customers=(own,),
                partner_id=PARTNER,
                role="partner",
                type="BUSINESS",
                name="Bench",
                profile=None,
            )
        ],
    )
    now = wall_now()
    async with bank.pool.acquire() as conn:
        partner = await credentials.create_partner(
            conn,
            bank.vault,
            slug=SLUG,
            name="Bench",
            own_customer_id=own,
            rate_per_minute=LIMIT_PER_MINUTE,
            money_per_minute=LIMIT_PER_MINUTE,
            now=now,
            partner_id=PARTNER,
        )
        password, _ = new_token()  # nobody logs in with it
        user = await credentials.create_partner_user(conn, PARTNER, username=SLUG, password=password, now=now)
        bearer, _ = await credentials.issue_token(conn, partner_id=PARTNER, user_id=user, now=now)
    return Credentials(f"{SLUG}.localhost", bearer, partner.shared_secret)


async def add_counterparties(bank: Bank, pairs: Sequence[tuple[int, int]]) -> list[UUID]:
    """Give each payer his payee as a counterparty; return the counterparties in order."""
    rows = await bank.pool.fetch("SELECT pocket_id, network_address FROM portal")
    addresses = {row["pocket_id"]: row["network_address"] for row in rows}
    outcomes = await submit_commands(
        bank,
        [
            AddCounterparty(
                caller=_CALLER,
                key=command_id("introduce", f"{payer}:{payee}"),
                customers=(customer_of(payer),),
                counterparty_name={"type": "business", "business_name": f"Customer {payee}"},
                display_name=None,
                type="on_us",
                details={"account_number": addresses[pocket_of(payee)]},
                holder=f"Customer {payee}",
                target_customer_id=customer_of(payee),
                target_pocket_id=pocket_of(payee),
                is_screened=True,
            )
            for payer, payee in pairs
        ],
    )
    return [UUID(str(outcome["counterparty_id"])) for outcome in outcomes]
