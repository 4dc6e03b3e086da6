"""A bank with one partner, and an application of a few operations made for these tests."""

import asyncio
from collections import Counter
from datetime import date
from typing import Annotated

import msgspec
import pytest
from tests.interfaces.partner_client import PartnerClient, close_app, new_partner
from tests.whole_bank import bank, new_holder

from billfold.engine.bank import Bank
from billfold.flows.account_commands import EnrolCustomer
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.operations import TOKEN, Deprecation, delete, get, post
from billfold.interfaces.http.parameters import Query
from billfold.interfaces.http.responses import HttpResponse
from billfold.interfaces.partner_api import login, token
from billfold.interfaces.partner_api.app import create_partner_app
from billfold.kit import ids
from billfold.kit.errors import Broken, NotFound, Refused, Unavailable

__all__ = ["bank", "new_holder"]

THING = "/api/v2/things/"
RUNS: Counter[str] = Counter()


class Size(msgspec.Struct, forbid_unknown_fields=True):
    width: Annotated[int, msgspec.Meta(gt=0)]


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    amount_usdc: Annotated[int, msgspec.Meta(gt=0)]
    size: Size | None = None


@post(THING, moves_money=True)
async def make_thing(data: Thing, caller: Caller, bank: Bank) -> dict[str, object]:
    """Make a thing. Enrols a customer, so that there is an effect to count."""
    RUNS["make"] += 1
    answer = await bank.engine.submit(
        EnrolCustomer(
            **caller.command_fields(ids.new()),
            partner_id=caller.partner_id,
            role="customer",
            type="BUSINESS",
            name=data.name,
            profile={},
        )
    )
    return {"run": RUNS["make"], "customer_id": answer.outcome["customer_id"]}


@get(THING + "{thing_id}/")
async def get_thing(
    thing_id: str,
    caller: Caller,
    limit: int = 30,
    omit: Annotated[list[str] | None, Query(name="omit[]")] = None,
) -> dict[str, object]:
    """Show a thing."""
    RUNS["get"] += 1
    return {"id": thing_id, "run": RUNS["get"], "limit": limit, "omit": omit, "now": caller.now}


@delete(THING + "{thing_id}/")
async def delete_thing(thing_id: str, caller: Caller) -> None:
    """Delete a thing."""
    RUNS["delete"] += 1


@get("/api/v1/old-things/", deprecated=Deprecation(since=date(2025, 1, 1), sunset=date(2027, 1, 1)))
async def list_old_things(caller: Caller) -> list[str]:
    """List things as before."""
    return [caller.operation]


@post("/api/v1/sandbox/thing/", TOKEN, status=202)
async def make_simulated_thing(data: Thing, caller: Caller) -> None:
    """Make a thing in the sandbox."""
    RUNS["sandbox"] += 1


@post("/api/v2/slow/")
async def do_slowly(caller: Caller) -> dict[str, int]:
    """Take a while."""
    RUNS["slow"] += 1
    await asyncio.sleep(0.3)
    return {"run": RUNS["slow"]}


@post("/api/v2/errors/{kind}/")
async def raise_error(kind: str, caller: Caller) -> HttpResponse:
    """Go wrong in the way that is asked for."""
    RUNS[kind] += 1
    raise {
        "refused": Refused("pocket-not-empty", "There is money in it.", cash=1),
        "not-found": NotFound(),
        "unavailable": Unavailable("Not now.", retry_after_seconds=7),
        "broken": Broken("a secret detail"),
        "bug": ZeroDivisionError("a secret detail"),
    }[kind]


OPERATIONS = [
    login.log_in, token.exchange_assertion, make_thing, get_thing, delete_thing, list_old_things,
    make_simulated_thing, do_slowly, raise_error,
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_runs():
    RUNS.clear()


@pytest.fixture
async def app(bank):
    made = create_partner_app(bank, operations=OPERATIONS)
    yield made
    await close_app(made)


@pytest.fixture
async def acme(bank):
    return await new_partner(bank)


@pytest.fixture
async def client(app, acme):
    made = PartnerClient(app, acme)
    yield made
    await made.close()
