"""Batches as both APIs accept and return them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.counterparties.store import open_order
from billfold.accounts.counterparties.types import format_name
from billfold.accounts.holds.schemas import named
from billfold.approvals.schemas import DualAuthUser, Review, Reviewers, render_person, render_shared, shown_counterparty
from billfold.approvals.store.reviews import ReviewState
from billfold.approvals.transfer_orders import InternalReallocation, OnUsOrder, decode_content
from billfold.approvals.transfer_preview import RequiredApproval
from billfold.batches.preview import PocketPreview
from billfold.batches.types import (
    ROWS_MAX,
    Batch,
    BatchKind,
    BatchMode,
    BatchRow,
    BatchStatus,
    CounterpartyType,
    NewCounterparty,
    NewPocket,
    RowProblem,
    RowState,
    RowType,
    TransferRow,
)
from billfold.bills.rules.strategies import strategy_for_weeks
from billfold.data_keys.keys import DataKey, PartyField
from billfold.data_keys.notes import open_note
from billfold.http.schemas import Amount, usd

_CSV_CHARS_MAX = 1_000_000


def _fields(row: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{each}`" for each in row.__struct_fields__)


class CreateBatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The transfers, counterparties or Pockets, as `rows` or as `csv`, carried out all or none, or each by itself.

    In the Customer API the reviewers may be named, as for a transfer request.
    """

    kind: BatchKind
    mode: BatchMode
    rows: (
        Annotated[
            list[dict[str, Any]],
            msgspec.Meta(
                min_length=1,
                max_length=ROWS_MAX,
                description=f"Objects with the fields {_fields(TransferRow)}; of COUNTERPARTIES "
                f"{_fields(NewCounterparty)}; of POCKETS {_fields(NewPocket)}.",
            ),
        ]
        | None
    ) = None
    csv: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=_CSV_CHARS_MAX,
                description=f"A line with the names of columns, and at most {ROWS_MAX} lines. The columns are the "
                "fields of rows; an empty cell is a field left out.",
            ),
        ]
        | None
    ) = None
    reviewers: Reviewers = []


class BatchCounts(msgspec.Struct, kw_only=True):
    """The numbers of rows: all, and those that wait, were carried out, or were not."""

    total: int
    waiting: int
    completed: int
    failed: int


class BatchApproval(msgspec.Struct, kw_only=True):
    """The approval of a list. It is bound to the `content_hash`, the hash over those of the rows in their order."""

    requested_by: DualAuthUser
    reviewers: list[DualAuthUser]
    reviews: list[Review]
    required_approvals: int
    approval_rule_id: UUID | None
    blocked_reason: str | None
    content_hash: str
    expires_at: datetime


class ShownBatch(msgspec.Struct, kw_only=True):
    """A batch and its progress. `amount` is the sum of its rows.

    COMPLETED says that every row has a result, FAILED that an atomic one was refused and nothing moved. `approval` is
    null for the batches of a partner, which nobody approves.
    """

    id: UUID
    kind: BatchKind
    mode: BatchMode
    status: BatchStatus
    rows: BatchCounts
    amount: Amount
    approval: BatchApproval | None
    time_created: datetime
    time_finished: datetime | None
    object_type: Literal["Batch"] = "Batch"


class ShownNewPocket(msgspec.Struct, kw_only=True):
    """A Pocket that a row opens: its name and strategies."""

    pocket_name: str
    deposit_strategy_id: str
    reinvestment_strategy_id: str | None


class ShownBatchRow(msgspec.Struct, kw_only=True):
    """A row: what it orders, null if it could not be read, and its result.

    `transfer_id` is the id of the transfer or wire, and in the Customer API of the transfer request. `problem` says why
    the row was not carried out. `wire_instructions` are shown to members, who approve them. Of a counterparty
    `counterparty` is what it adds, with its `counterparty_type` in place of `type`, and `counterparty_id` its id once
    it is added; of a Pocket `pocket`, and `pocket_id` once it is open.
    """

    number: int
    idempotency_key: str | None
    state: RowState
    transfer_id: UUID | None
    type: RowType | None
    counterparty_type: CounterpartyType | None
    from_pocket_id: UUID | None
    to_pocket_id: UUID | None
    counterparty_id: UUID | None
    counterparty_name: str | None
    amount: Amount | None
    description: str | None
    end_to_end_identification: str | None
    wire_instructions: str | None
    problem: RowProblem | None
    counterparty: dict[str, Any] | None = None
    hold_id: UUID | None = None
    external_id: str | None = None
    metadata: dict[str, str] = {}
    pocket: ShownNewPocket | None = None
    pocket_id: UUID | None = None
    object_type: Literal["BatchRow"] = "BatchRow"


class RowProblems(msgspec.Struct, kw_only=True):
    """A row that would not be carried out now, and why."""

    number: int
    problems: list[RowProblem]


class BatchPreview(msgspec.Struct, kw_only=True):
    """The effect of a batch if it were carried out now. Nothing is written.

    `amount` is the sum of the rows that can be read. `pockets` are those that pay, for a batch of at most 200 rows.
    """

    rows: int
    amount: Amount
    problems: list[RowProblems]
    approval: RequiredApproval | None
    pockets: list[PocketPreview]
    object_type: Literal["BatchPreview"] = "BatchPreview"


def render_batch(batch: Batch, state: ReviewState | None) -> ShownBatch:
    """Return a batch for display; with the reviews of a member's."""
    waiting = batch.row_count - batch.completed - batch.failed
    return ShownBatch(
        id=batch.request_id,
        kind=batch.kind,
        mode=batch.mode,
        status=batch.shown_status,
        rows=BatchCounts(total=batch.row_count, waiting=waiting, completed=batch.completed, failed=batch.failed),
        amount=usd(batch.amount),
        approval=None if state is None else _approval(batch, state),
        time_created=batch.created_at,
        time_finished=batch.finished_at,
    )


def _approval(batch: Batch, state: ReviewState) -> BatchApproval:
    shared = render_shared(batch, state)
    names = set(BatchApproval.__struct_fields__)
    return BatchApproval(
        reviewers=[render_person(state.users[each]) for each in batch.reviewers],
        approval_rule_id=batch.terms.rule_id,
        **{name: value for name, value in shared.items() if name in names},
    )


_OPTIONAL = ("hold_id", "external_id", "metadata", "pocket", "pocket_id")


def render_row(row: BatchRow, batch: Batch, data_key: DataKey | None) -> ShownBatchRow:
    """Return a row for display. The key is that of the customer whose members requested it, or whom it concerns."""
    order: Mapping[str, Any] = {}
    of_partner, of_transfers = batch.partner_id is not None, batch.kind == "TRANSFERS"
    if row.content is not None:
        order = msgspec.json.decode(row.content) if of_partner else {}
        attached = order.get("attached") or {}
        if not of_transfers:
            order = (_pocket_in if batch.kind == "POCKETS" else _counterparty_in)(row, data_key)
        elif not of_partner:
            order = _order_in(row.content, data_key)
        else:
            order |= open_note(data_key, attached)
    names = ("type", "counterparty_type", "from_pocket_id", "to_pocket_id", "counterparty_id", "counterparty_name")
    texts = ("description", "end_to_end_identification")
    instructions = None if of_partner else order.get("wire_instructions")
    return msgspec.convert(
        {
            **{name: order.get(name) for name in (*names, *texts)},
            "number": row.row_no,
            "idempotency_key": row.row_key,
            "wire_instructions": instructions,
            "state": row.state,
            "transfer_id": row.object_id if row.state == "COMPLETED" and of_transfers else None,
            "counterparty": order.get("counterparty"),
            **{name: order[name] for name in _OPTIONAL if order.get(name)},
            "amount": None if not row.amount else msgspec.to_builtins(usd(row.amount)),
            "problem": row.problem,
        },
        ShownBatchRow,
    )


def payee_in(row: BatchRow, kind: str, data_key: DataKey | None) -> str | None:
    """Return the name of the payee, or new Pocket, of a member's row; None if it pays a Pocket or cannot be read."""
    if row.content is None:
        return None
    if kind == "POCKETS":
        opened: str = msgspec.json.decode(row.content)["name"]
        return opened
    order = _counterparty_in(row, data_key) if kind == "COUNTERPARTIES" else _order_in(row.content, data_key)
    name: str | None = order["counterparty_name"]
    return name


def _counterparty_in(row: BatchRow, data_key: DataKey | None) -> dict[str, Any]:
    """Return the fields of a row that adds a counterparty."""
    assert row.content is not None
    added = shown_counterparty(open_order(data_key, msgspec.json.decode(row.content)))
    # Not the match with the name of the owner: rows would tell it without the limit of a single counterparty.
    names = ("display_name", "verification", "details")
    return {
        "counterparty_type": added["type"],
        "counterparty_name": format_name(added["counterparty_name"]),
        "counterparty_id": row.object_id if row.state == "COMPLETED" else None,
        **open_note(data_key, added.get("attached") or {}),
        "counterparty": {name: added[name] for name in names if added.get(name) is not None},
    }


def _pocket_in(row: BatchRow, data_key: DataKey | None) -> dict[str, Any]:
    """Return the fields of a row that opens a Pocket."""
    assert row.content is not None
    opened = msgspec.json.decode(row.content)
    deposit, reinvestment = opened["deposit_weeks"], opened["reinvestment_weeks"]
    return {
        "pocket": {
            "pocket_name": opened["name"],
            "deposit_strategy_id": strategy_for_weeks(deposit).id,
            "reinvestment_strategy_id": None if reinvestment is None else strategy_for_weeks(reinvestment).id,
        },
        "pocket_id": row.object_id if row.state == "COMPLETED" else None,
        **open_note(data_key, opened.get("attached") or {}),
    }


def _order_in(text: str, data_key: DataKey | None) -> dict[str, Any]:
    """Return the fields of a row from the content of its transfer request."""
    content = decode_content(text)
    order = content.transfer
    details = order.details if isinstance(order, OnUsOrder) else None
    name = None if content.payee is None else format_name(content.payee["counterparty_name"])
    return {
        "type": "WIRE" if details is None else details.__struct_config__.tag,
        "from_pocket_id": content.pocket_id,
        "to_pocket_id": details.destination_pocket_id if isinstance(details, InternalReallocation) else None,
        "counterparty_id": content.counterparty_id,
        "counterparty_name": name,
        "description": getattr(order, "description", None),
        "end_to_end_identification": getattr(order, "end_to_end_identification", None),
        "hold_id": named(getattr(order, "hold_id", UNSET)),
        **({} if content.attached is UNSET else open_note(data_key, msgspec.to_builtins(content.attached))),
        "wire_instructions": content.instructions and PartyField.TEXT.open(data_key, content.instructions),
    }
