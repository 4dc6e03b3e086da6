"""Explains why a request was refused outright, and left no object: the rule, and its figures at that time."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.explain.schemas import Explanation, happened, narrate
from billfold.explanations.refusals import explain_shortfall
from billfold.http.caller import Call
from billfold.http.schemas import usd
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.errors import NotFound
from billfold.platform.problems import PROBLEMS
from billfold.request_log.store import LoggedRequest, Refusal, refusal_of

_POCKETS, _FIGURES = "pockets.read", ("pockets.read", "transfers.read")
"""What shows the figures of a Pocket, and those of what another member requested."""
_CENTS = ("_usdc", "_cents")


async def explain_refused_request(row: LoggedRequest, caller: Call, bank: Bank) -> Explanation:
    """Explain the error that a request was answered with. Raises NotFound for one without."""
    if row.error_code is None:
        raise NotFound("This request was not refused.")
    problem = PROBLEMS.get(row.error_code)
    words = "" if problem is None else f"{problem.meaning} {problem.remedy}"
    steps = [happened("Requested", row.requested_at), *(happened("Wrong", each) for each in row.fields)]
    refusal, parts = refusal_of(bank.vault, row), []
    if refusal is not None and _may_see(caller, row):
        steps.append(happened("Reason", refusal.detail))
        steps += [happened(_label_of(name), _text_of(name, value)) for name, value in refusal.facts.items()]
        parts.append(await _shortfall(refusal, bank) if caller.may(_POCKETS) else None)
    steps.append(happened("Refused", f"{row.status} {row.error_code}"))
    return narrate("Refusal", row.error_code, words, *steps, parts=parts)


def _may_see(caller: Call, row: LoggedRequest) -> bool:
    """Tell whether the caller sees why: of its own request, and of others by what it may read.

    A request that the same member sent by another application is not its own: that one may read more.
    """
    if not isinstance(caller, CustomerCaller):
        return True
    is_own = (caller.access.client_id, caller.access.member_id) == (row.client_id, row.member_id)
    return is_own or all(map(caller.may, _FIGURES))


async def _shortfall(refusal: Refusal, bank: Bank) -> Explanation | None:
    if (about := refusal.about) is None:
        return None
    key, at = (UUID(about["customer_id"]), UUID(about["pocket_id"])), datetime.fromisoformat(about["at"])
    return await explain_shortfall(bank, key, at, amount=about["amount"], fee=about["fee"])


def _label_of(name: str) -> str:
    return name.removesuffix("_usdc").removesuffix("_cents").replace("_", " ").capitalize()


def _text_of(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    if name.endswith(_CENTS) and isinstance(value, int):
        return usd(value).formatted
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
