"""What an invited person typed and is not complete, and what they had before them when they typed it."""

from __future__ import annotations

from billfold.data_keys.keys import DataKeys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.onboarding.applications.content import Application
from billfold.onboarding.invites import store
from billfold.platform.crypto import associated_data
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.onboarding.applications.requests import Check
    from billfold.onboarding.invites.types import InviteRow

_SEEN = "application as it was shown"


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a step as they were typed, what is wrong with each, and the mark of what was stored beside them."""

    values: dict[str, str] = msgspec.field(default_factory=dict)
    mistakes: dict[str, str] = msgspec.field(default_factory=dict)
    mark: str = ""


async def list_drafts(bank: Bank, invite: InviteRow, applicant_id: UUID) -> dict[str, Draft]:
    """Return the drafts of an invite by step."""
    sealed = await store.list_drafts(bank.pool, invite.invite_id)
    opened = {}
    for step, content in sealed.items():
        place = _place(invite, applicant_id, step)
        plain = await bank.ports[DataKeys].open(bank.pool, applicant_id, content, aad=place)
        opened[step] = msgspec.json.decode(plain, type=Draft)
    return opened


async def put_draft(bank: Bank, invite: InviteRow, applicant_id: UUID, *, step: str, draft: Draft) -> None:
    """Keep what is left of a step; an empty draft is dropped."""
    content = None
    if draft.values or draft.mistakes:
        place = _place(invite, applicant_id, step)
        content = await bank.ports[DataKeys].seal(bank.pool, applicant_id, msgspec.json.encode(draft), aad=place)
    await store.put_draft(bank.pool, invite.invite_id, step, content)


def mark_of(bank: Bank, shown: Any) -> str:  # noqa: ANN401 - anything that JSON can hold
    """Return a text that stands in a form for what was shown with it, and tells nothing about it."""
    return bank.vault.compute_mac(_canonical(shown), _SEEN).hex()


def is_marked(bank: Bank, mark: str, shown: Any) -> bool:  # noqa: ANN401 - anything that JSON can hold
    """Tell whether a mark stands for this."""
    return bank.vault.verify_mac(_bytes_of(mark), _canonical(shown), _SEEN)


def unless_changed(bank: Bank, mark: str, shown_of: Callable[[Application], Any]) -> Check:
    """Return a check that refuses `content-changed` when an application no longer shows what a form was marked with."""

    def check(application: Application) -> None:
        if not is_marked(bank, mark, shown_of(application)):
            raise Refused("content-changed", "Somebody else has changed this meanwhile.")

    return check


def _bytes_of(mark: str) -> bytes:
    try:
        return bytes.fromhex(mark)
    except ValueError:
        return b""


def _canonical(shown: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(shown, order="deterministic")


def _place(invite: InviteRow, applicant_id: UUID, step: str) -> bytes:
    return associated_data("invite_draft", "content", f"{invite.invite_id}/{step}", tenant_id=applicant_id)
