"""Bodies and queries about Pockets that both APIs share."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.notes.schemas import ChangedNote
from billfold.accounts.notes.store import note_fields
from billfold.accounts.pockets import store
from billfold.accounts.pockets.commands import UpdatePocket
from billfold.bills.rules import strategies
from billfold.bills.rules.strategies import STRATEGIES
from billfold.http.caller import Call
from billfold.http.parameters import texts_among
from billfold.http.schemas import NOT_BLANK
from billfold.ledger.bank import Bank
from billfold.platform.errors import InvalidInput, NotFound

PocketName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=NOT_BLANK)]
ClosureReason = Literal["USER_INSTIGATED", "PARTNER_INITIATED_CLOSURE", "SUSPICIOUS_ACTIVITY", "INACTIVITY"]
_OMITTABLE = frozenset({"ALL_TIME_EARNINGS", "PORTFOLIO"})
_STATUSES = frozenset({"PENDING", "OPEN", "FROZEN", "CLOSED"})


class OmitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a Pocket to leave out."""

    omit: Annotated[list[str] | None, texts_among("omit[]", _OMITTABLE, description="Parts to leave out.")] = None

    @property
    def parse_omit(self) -> frozenset[str]:
        """The parts to leave out."""
        return frozenset(self.omit or ())


Statuses = Annotated[list[str] | None, texts_among("filter[status]", _STATUSES)]


class ChangePocket(ChangedNote, forbid_unknown_fields=True, kw_only=True):
    """Changes to a Pocket. Closing needs `status` CLOSED and a `closure_reason`."""

    pocket_name: PocketName | None = None
    name: PocketName | None = None
    status: Literal["CLOSED"] | None = None
    closure_reason: ClosureReason | None = None
    deposit_strategy_id: str | None = None
    reinvestment_strategy_id: str | UnsetType | None = UNSET


async def resolve_pockets(call: Call, bank: Bank, owner: UUID, requested: Sequence[UUID] | None) -> list[UUID]:
    """Return the requested pockets, each once, or all of the customer. Raises NotFound."""
    if requested is None:
        return await store.list_ids(bank.pool, owner, as_of=call.as_of)
    return [(await call.pocket(bank, each, owner))[1] for each in dict.fromkeys(requested)]


async def update_pocket_command(call: Call, bank: Bank, pocket: tuple[UUID, UUID], data: ChangePocket) -> UpdatePocket:
    """Return the command for a change of (customer_id, pocket_id). Raises InvalidInput."""
    owner, pocket_id = pocket
    if data.status and data.closure_reason is None:
        raise InvalidInput.at("body", "closure_reason", msg="is needed to close", kind="missing")
    if data.closure_reason and data.status is None:
        raise InvalidInput.at("body", "closure_reason", msg="is only taken with status CLOSED")
    if data.pocket_name and data.name and data.pocket_name != data.name:
        raise InvalidInput.at("body", "name", msg="contradicts pocket_name")
    keeps_strategy = data.reinvestment_strategy_id is UNSET
    reinvestment = None if keeps_strategy else data.reinvestment_strategy_id
    deposit = data.deposit_strategy_id
    return UpdatePocket(
        **call.command_fields(owner),
        **await note_fields(bank, owner, "pocket", data, noted=pocket_id),
        pocket_id=pocket_id,
        name=data.pocket_name or data.name,
        deposit_weeks=resolve_weeks("deposit_strategy_id", deposit) if deposit else None,
        reinvestment_weeks=resolve_weeks("reinvestment_strategy_id", reinvestment)
        if isinstance(reinvestment, str)
        else None,
        keep_reinvestment=keeps_strategy,
        close_for=data.closure_reason if data.status else None,
        references=(pocket_id,) if data.status else (),
    )


def resolve_strategies(
    deposit: str | None, reinvested: str | UnsetType | None, **shared_fields: str | None
) -> tuple[int, int | None]:
    """Return the terms in weeks of the deposit and reinvestment strategies, None for none.

    `shared_fields` are the fields that set both strategies. Raises InvalidInput.
    """
    shared = {name: value for name, value in shared_fields.items() if value is not None}
    if not shared and deposit is None:
        raise InvalidInput.at("body", "deposit_strategy_id", msg="a strategy is needed", kind="missing")
    chosen = {*shared.values()} | ({deposit} if deposit is not None else set())
    if len(chosen) > 1 or (shared and reinvested is not UNSET and reinvested not in chosen):
        name = next(iter(shared))
        raise InvalidInput.at("body", name, msg="contradicts the other strategy fields")
    (strategy,) = chosen
    name = "deposit_strategy_id" if deposit is not None else next(iter(shared))
    weeks = resolve_weeks(name, strategy)
    if reinvested is UNSET:
        return weeks, weeks
    if reinvested is None:
        return weeks, None
    return weeks, resolve_weeks("reinvestment_strategy_id", str(reinvested))


def resolve_weeks(name: str, strategy_id: str) -> int:
    """Return the term of a strategy named in the field `name`. Raises InvalidInput."""
    try:
        return strategies.get_strategy(strategy_id).maturity_weeks
    except NotFound:
        known = ", ".join(strategy.id for strategy in STRATEGIES)
        raise InvalidInput.at("body", name, msg=f"must be one of {known}") from None
