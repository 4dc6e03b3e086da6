"""Reserves nonces for withdrawals once the wallet can pay them; those that must not be paid are refused without one."""

from typing import Final

from billfold.accounts.counterparties.rules.verification_kinds import SANCTION_SCREEN_FAILED
from billfold.data_keys.keys import DataKeys, PartyField
from billfold.payments.crypto.chains import Token, units_of
from billfold.payments.crypto.nodes import NodeUnavailable
from billfold.payments.crypto.withdrawals import store, transactions
from billfold.payments.crypto.withdrawals.rules import WithdrawalRow
from billfold.payments.crypto.withdrawals.store import WaitingWithdrawal
from billfold.payments.crypto.withdrawals.transactions import Fees, OutgoingTransaction, WalletProblem
from billfold.payments.crypto.withdrawals.wallet import Blocked, Round, WalletNode, find_objection
from billfold.platform.money import format_usd

IN_FLIGHT_MAX: Final = 16
"""Maximum number of a wallet's transactions that wait for their block: nodes keep few per sender."""
_CUSTOMER_FROZEN, _NOT_PAYABLE = "ACCOUNT_UNAVAILABLE", "INVALID_TRANSFER"
_REASON_OF = {"sanction-screen-failed": SANCTION_SCREEN_FAILED}
"""Code of an objection -> the reason shown to the customer; others: INVALID_TRANSFER."""


async def reserve_nonces(this: Round) -> int:
    """Reserve nonces for waiting withdrawals, oldest first; return how many were reserved or refused.

    Raises Blocked if the wallet cannot pay the next one: later and smaller ones wait behind it.
    """
    outgoing = await store.list_outgoing(this.bank.pool, this.chain.name)
    waiting = await store.list_waiting(this.bank.pool, this.chain.name, IN_FLIGHT_MAX)
    if not waiting:
        return 0
    ring = await this.bank.ports[DataKeys].load(this.bank.pool, {each.row.customer_id for each in waiting})
    done = 0
    for each in waiting:
        try:
            address = PartyField.ACCOUNT.open(ring.get(each.row.customer_id), each.row.wallet_address)
            reason = await _find_refusal(this, each, address)
            if reason is not None:
                done += await store.refuse_withdrawal(this.bank.pool, each.row, reason, now=this.wall)
                continue
            if len(outgoing) + done >= IN_FLIGHT_MAX:
                break
            assert address is not None
            done += await _reserve_nonce(this, each, address)
        except Blocked:
            raise
        except Exception as error:  # noqa: BLE001 - it affects only this withdrawal
            this.problems.append(this.blocked_by(error, each.row.withdrawal_id))
    return done


async def _find_refusal(this: Round, waiting: WaitingWithdrawal, address: str | None) -> str | None:
    """Return why a withdrawal must not be paid any more, as an API reason; None if it may be."""
    if waiting.is_stopped:
        return _CUSTOMER_FROZEN if waiting.is_frozen else SANCTION_SCREEN_FAILED
    if address is None:
        return _NOT_PAYABLE
    objection = await find_objection(this.bank, this.bank.pool, waiting.row.chain, address)
    return None if objection is None else _REASON_OF.get(objection.code, _NOT_PAYABLE)


async def _reserve_nonce(this: Round, waiting: WaitingWithdrawal, address: str) -> bool:
    row, token = waiting.row, this.chain.token
    fees = await current_fees(this)
    units = units_of(row.amount, token.decimals)
    # Another process may have reserved some in the meantime.
    outgoing = await store.list_outgoing(this.bank.pool, this.chain.name)
    await _check_nonce(this, outgoing)
    await _check_tokens(this, outgoing, token=token, row=row)
    transaction = transactions.payment(
        this.chain.chain_id, 0, token=token.address, recipient=address, units=units, gas_limit=0, fees=fees
    )
    estimates = await this.ask_all(lambda node: node.estimate_gas(this.wallet.address, transaction))
    usable = [each for each in estimates if each is not None]
    if not usable:
        return await store.refuse_withdrawal(this.bank.pool, row, _NOT_PAYABLE, now=this.wall)
    if len(usable) < len(estimates):
        raise Blocked(WalletProblem.NODES_DISAGREE, "Nodes disagree on whether the token would refuse a payment.")
    gas_limit = transactions.gas_limit_of(max(usable))
    await _check_gas(this, outgoing, fees=fees, gas_limit=gas_limit)
    async with this.bank.pool.acquire() as conn, conn.transaction():
        return await store.reserve_nonce(
            conn, this.wallet, row, token=token.address, gas_limit=gas_limit, now=this.wall
        )


async def current_fees(this: Round) -> Fees:
    """Return the current fees: the highest that any node requires."""
    base_fees = await this.ask_available(lambda node: node.base_fee())
    priority_fees = await this.ask_available(lambda node: node.priority_fee())
    if not base_fees or not priority_fees:
        raise Blocked(WalletProblem.NODE_UNAVAILABLE, "No node says what a transaction costs.")
    return transactions.current_fees(max(base_fees), max(priority_fees))


async def _check_nonce(this: Round, outgoing: list[OutgoingTransaction]) -> None:
    wallet = await store.find_wallet(this.bank.pool, this.chain.name, this.wallet.address)
    assert wallet is not None
    used = min(await this.ask_all(lambda node: node.transaction_count(wallet.address)))
    if used > wallet.next_nonce and not outgoing:
        detail = f"The wallet has sent {used} transactions, and the bank knows of {wallet.next_nonce}."
        raise Blocked(WalletProblem.USED_ELSEWHERE, detail)


async def _check_tokens(this: Round, outgoing: list[OutgoingTransaction], *, token: Token, row: WithdrawalRow) -> None:
    units = units_of(row.amount, token.decimals)

    async def balance(node: WalletNode) -> int:
        head = await node.head()
        held = await node.balance(token.address, this.wallet.address, head.number)
        if held is None:
            raise NodeUnavailable(node.host, "does not report the balance of the wallet")
        return held

    promised = sum(units_of(each.cents, token.decimals) for each in outgoing if not each.is_mined)
    free = min(await this.ask_all(balance)) - promised
    if free < units:
        short = format_usd(-(-(units - free) // units_of(1, token.decimals)))
        raise this.blocked(row.withdrawal_id, WalletProblem.TOKENS_SHORT, f"{short} in {token.asset} are short.")


async def _check_gas(this: Round, outgoing: list[OutgoingTransaction], *, fees: Fees, gas_limit: int) -> None:
    unmined = [each for each in outgoing if each.latest is not None and not each.is_mined]
    promised = sum(each.reservation.gas_limit * each.signatures[-1].max_fee for each in unmined)
    needed = gas_limit * fees.max_fee + promised
    held = min(await this.ask_all(lambda node: node.native_balance(this.wallet.address)))
    if held < needed:
        raise Blocked(WalletProblem.GAS_SHORT, f"The wallet is short of {needed - held} wei for gas.")
