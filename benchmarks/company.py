"""The past of the company of a sandbox: Pockets with payments, payees, and requests to be approved."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from benchmarks.dataset import submit_commands, vacuum_and_checkpoint
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.counterparties.store import seal_details
from billfold.accounts.pockets.commands import OpenPocket
from billfold.approvals import transfer_requests
from billfold.approvals.transfer_orders import InternalReallocation, OnUsOrder, RequestContent
from billfold.approvals.types import Actor
from billfold.data_keys.keys import DataKeys
from billfold.identity.users import sessions, store
from billfold.identity.users.rules import ClientInfo
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction, Origin, Rail
from billfold.payments.deposits.rules import ReceiveMoney
from billfold.payments.on_us.schemas import RequestedAmount
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database import embedded
from billfold.platform.dates import et_date
from billfold.platform.ids import command_id
from billfold.platform.settings.validation import variable_name
from billfold.sandbox.running_sandbox import SandboxFile, partner_http
from billfold.wiring.cli_context import DATABASE, Wiring

DAYS_MAX = 8
"""Business days on which payments arrive. A month ends among as many, so that there are statements."""
_ADVANCE_SECONDS = 600.0
_CALLER = "bench"
_CENTS = 1_000_00
_PARTNER = "SELECT partner_id FROM customer WHERE customer_id = $1"
_PORTALS = "SELECT pocket_id, portal_id FROM portal WHERE customer_id = $1 AND pocket_id = ANY($2) ORDER BY portal_id"


class CompanySizes(NamedTuple):
    """The number of each in the company."""

    pockets: int
    transactions: int
    payees: int
    requests: int
    days: int


class CompanySandbox:
    """The bank of a sandbox, next to its own processes."""

    def __init__(self, bank: Bank, stack: AsyncExitStack) -> None:
        self._bank, self._stack = bank, stack

    async def live(self, box: SandboxFile, sizes: CompanySizes) -> None:
        """Live through some days, and request transfers after them."""
        bank, owner = self._bank, box.customer_id
        pockets = await _open_pockets(bank, owner, sizes.pockets)
        await _add_payees(bank, owner, sizes.payees)
        portals = [tuple(row) for row in await bank.pool.fetch(_PORTALS, owner, pockets)]
        with partner_http(box) as http:
            for day in range(sizes.days):
                share = range(sizes.transactions * day // sizes.days, sizes.transactions * (day + 1) // sizes.days)
                await submit_commands(bank, [_payment(owner, nth, *portals[nth % len(portals)]) for nth in share])
                await vacuum_and_checkpoint(bank.pool)
                http.post(
                    "/api/v1/sandbox/clock/advance/", json={"business_days": 1}, timeout=_ADVANCE_SECONDS
                ).raise_for_status()
        await _request_transfers(bank, box, pockets, sizes.requests)
        lost = UnclaimedPayment(ids.new(), Direction.CREDIT, _CENTS, reason="NO_ACCOUNT", details={"description": ""})
        await hold_unclaimed_payments(bank, [lost], rail=Rail.WIRE)
        await vacuum_and_checkpoint(bank.pool)

    async def sign_in(self, email: str) -> str:
        """Sign a person in with both factors; return the cookie."""
        user = await store.find_user_by_email(self._bank.pool, self._bank.vault, email)
        assert user is not None
        return await sessions.open_session(
            self._bank.pool,
            user.user_id,
            auth_methods=("pwd", "otp"),
            complete=True,
            client_info=ClientInfo(address="127.0.0.1", device="Bench"),
            now=wall_now(),
        )

    async def forget_requests(self) -> None:
        """Have no request counted yet: the limits stay, and are not reached."""
        await self._bank.pool.execute("DELETE FROM rate_limit_window")

    async def close(self) -> None:
        """Leave the bank to its own processes."""
        await self._stack.aclose()


async def open_company(folder: Path) -> CompanySandbox:
    """Open the bank of the sandbox that runs in a folder."""
    wiring, stack = Wiring({variable_name("state_dir"): str(folder)}), AsyncExitStack()
    dsn = embedded.find_running(folder, DATABASE)
    assert dsn is not None
    return CompanySandbox(await stack.enter_async_context(wiring.bank(wiring.settings(), dsn)), stack)


async def _open_pockets(bank: Bank, owner: UUID, count: int) -> list[UUID]:
    pockets, partner_id = [ids.new() for _ in range(count)], await bank.pool.fetchval(_PARTNER, owner)
    await submit_commands(
        bank,
        [
            OpenPocket(
                caller=_CALLER,
                key=ids.new(),
                customers=(owner,),
                partner_id=partner_id,
                name=f"Branch {nth:03}",
                deposit_weeks=4,
                reinvestment_weeks=4,
                pocket_id=each,
            )
            for nth, each in enumerate(pockets)
        ],
    )
    return pockets


def _payment(owner: UUID, nth: int, pocket_id: UUID, portal_id: UUID) -> ReceiveMoney:
    key = command_id(_CALLER, f"payment {nth}")
    return ReceiveMoney(
        caller=_CALLER,
        key=key,
        customers=(owner,),
        rail=Rail.WIRE,
        portal_id=portal_id,
        pocket_id=pocket_id,
        amount=_CENTS + nth,
        description=f"Invoice {nth}",
        details={"wire_id": str(key)},
    )


async def _add_payees(bank: Bank, owner: UUID, count: int) -> None:
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    account = {"routing_number": "021000021", "account_type": "CHECKING", "institution_name": "A bank"}
    await submit_commands(
        bank,
        [
            AddCounterparty(
                caller=_CALLER,
                key=ids.new(),
                customers=(owner,),
                type="ach",
                counterparty_name={"type": "business", "business_name": f"Supplier {nth:05}"},
                details=seal_details(data_key, "ach", {**account, "account_number": f"{10**9 + nth}"}),
                is_screened=True,
            )
            for nth in range(count)
        ],
    )


async def _request_transfers(bank: Bank, box: SandboxFile, pockets: Sequence[UUID], count: int) -> None:
    """Let the colleague request transfers between the Pockets, which everybody else may approve."""
    user = await store.find_user_by_email(bank.pool, bank.vault, box.colleague.email)
    assert user is not None
    (own,) = await store.list_user_memberships(bank.pool, user.user_id)
    now = await bank.now()
    by = Actor(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=own.customer_id,
        member_id=own.member_id,
        user_id=user.user_id,
        client_id=_CALLER,
        role=own.role,
        scopes=None,
        name=user.name,
        origin=Origin(kind="MEMBER", name=user.name, member_id=own.member_id),
        now=now,
        business_date=et_date(now),
        wall=wall_now(),
    )
    for nth in range(count):
        order = OnUsOrder(
            id=ids.new(),
            origin_pocket_id=pockets[nth % len(pockets)],
            amount=RequestedAmount(amount_usdc=_CENTS),
            details=InternalReallocation(destination_pocket_id=pockets[(nth + 1) % len(pockets)]),
        )
        await transfer_requests.create(bank, by, RequestContent(transfer=order))
