"""`billfold desk`: a day on the command line, from orders to the result."""

import re
from datetime import timedelta

import pytest
from tests.payments.cli_bank import prepare
from tests.support.approvals import confirmed, proposed
from tests.support.small_rails import Customer

from billfold.ledger.scheduler import bank_customer_id
from billfold.platform import ids
from billfold.platform.dates import ET, et_instant
from billfold.platform.money import cents_for, format_price
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.trading.settlement.commands import ConfirmSettlement, ReportInstruction
from billfold.trading.settlement.store import list_open
from billfold.trading.settlement.types import InstructionStatus
from billfold.trading.store import get_order
from billfold.trading.worker import DeskRounds

__all__ = ["prepare"]
DEALERS = {"BILLFOLD_DEALERS": "citadel,jpm"}
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def desk(billfold, prepare):
    """Run a command of a bank with dealers, in which a customer has bought bills: (run, a time of today)."""

    async def live(bank):
        anna = Customer(bank, "Anna")
        await anna.settle_in(100_000_00)
        return f"{(await bank.now()).astimezone(ET):%Y-%m-%d %H:%M}"

    now = prepare(live)
    return (lambda *words, **more: billfold(*(str(word) for word in words), **DEALERS | more)), now


@pytest.fixture
def order(desk, prepare):
    """An order that was sent."""
    run, _ = desk
    status, said = run("desk", "cover")
    assert (status, said) == (0, "✓ 1 orders were placed.")
    order_id = ID.findall(run("desk", "orders")[1])[0]

    async def send(bank):
        object.__setattr__(bank.settings, "dealers", ("citadel", "jpm"))
        await DeskRounds().run(bank)
        return await get_order(bank.pool, *await bank.pool.fetchrow("SELECT customer_id, order_id FROM dealer_order"))

    sent = prepare(send)
    assert str(sent.order_id) == order_id
    return sent


def line_of(order, now, units, reference, **more):
    """Return the cells of an execution by their columns."""
    return {
        "dealer": "citadel",
        "reference": reference,
        "side": "BUY",
        "cusip": order.cusip,
        "face": units * 100,
        "price": format_price(order.mark_micros),
        "money": f"{cents_for(units, order.mark_micros) / 100:.2f}",
        "traded_at": now,
    } | more


def options_of(line):
    return [word for name, value in line.items() for word in (f"--{name.replace('_', '-')}", value)]


def test_executions_are_entered_corrected_and_busted_by_two_operators(desk, order):
    run, now = desk
    line = line_of(order, now, 300, "T-1")
    made = run("desk", "enter", order.order_id, *options_of(line))
    assert f"BUY 300 {order.cusip}" in made[1]
    alone = run("proposals", "confirm", proposed(made))
    assert (alone[0], "same-operator" in alone[1]) == (1, True), "the command line is no way around"
    confirmed(run, made)
    status, said = run("desk", "enter", order.order_id, *options_of(line))
    assert (status, "citadel T-1 is booked already" in said) == (1, True)
    status, said = run("desk", "enter", order.order_id, *options_of(line | {"reference": "T-2", "face": 150}))
    assert (status, "multiple of $100" in said) == (1, True)
    execution = ID.findall(run("desk", "executions")[1])[0]
    money = f"{cents_for(200, order.mark_micros) / 100:.2f}"
    right = ("--face", 20_000, "--price", line["price"], "--money", money, "--reason", "wrong size")
    confirmed(run, run("desk", "correct", execution, "--reference", "C-1", *right))
    said = run("desk", "executions")[1]
    assert "FILL, replaced" in said
    newest = next(each for each in ID.findall(said) if each != execution)
    confirmed(run, run("desk", "bust", newest, "--reference", "B-1", "--reason", "busted"))
    assert run("desk", "bust", newest, "--reference", "B-2", "--reason", "again")[0] == 1
    assert run("verify", **DEALERS)[0] == 0


def test_a_blotter_is_imported_without_its_odd_lines(desk, order, tmp_path):
    run, now = desk
    lines = [line_of(order, now, units, f"T-{units}") for units in (100, 200, 300)]
    odd = [lines[0] | {"money": "1.00", "reference": "T-9"}, lines[1]]
    path = tmp_path / "blotter.csv"
    rows = [",".join(map(str, each.values())) for each in (*lines[:2], *odd, lines[2])]
    path.write_text("\n".join([",".join(lines[0]), *rows, "broken"]))
    made = run("desk", "import", path)
    assert "3 of 6 lines." in made[1]
    for reason in ("units times price", "is proposed already", "It is not a line of"):
        assert reason in made[1]
    confirmed(run, made)
    status, said = run("desk", "import", path)
    assert (status, "is booked already" in said) == (1, True)
    said = run("desk", "show")[1]
    assert "60,000" in said
    assert run("verify")[0] == 0


def test_the_desk_is_paused_resumed_quoted_and_orders_are_reported_and_cancelled(desk, order):
    run, _ = desk
    assert run("desk", "quote", order.order_id, "--dealer", "jpm", "--price", "99.7", "--face", 100_000)[0] == 0
    assert run("desk", "quote", order.order_id, "--dealer", "acme", "--price", "99.7", "--face", 100_000)[0] == 1
    assert run("desk", "quote", order.order_id, "--dealer", "jpm", "--price", "x", "--face", 100_000)[0] == 1
    why = ("--reason", "no answer")
    assert run("desk", "report", order.order_id, "UNKNOWN", *why) == (0, "✓ The order is UNKNOWN.")
    assert "is not covered" in run("desk", "show")[1]
    assert "desk" in run("doctor")[1]
    assert run("desk", "cancel", order.order_id, *why) == (0, "✓ The order is CANCELLED.")
    assert run("desk", "cancel", order.order_id, *why)[0] == 1
    assert run("desk", "pause", *why) == (0, "✓ The trading desk is paused.")
    assert "paused: no answer" in run("desk", "show")[1]
    status, said = run("desk", "cover")
    assert (status, "desk-paused" in said) == (1, True)
    assert run("desk", "resume", *why)[0] == 0
    assert run("desk", "cover", "--cusip", "912797PT8")[0] == 0
    assert "CANCELLED" in run("desk", "orders", "--all")[1]
    assert run("desk", "result", "--day", "2025-06-02")[0] == 0
    assert run("verify")[0] == 0


def test_settlement_is_shown_and_what_differs_is_decided_by_two_operators(desk, order, prepare):
    run, now = desk
    confirmed(run, run("desk", "enter", order.order_id, *options_of(line_of(order, now, 300, "T-1"))))
    assert run("settlement", "closed") == (0, "Nothing is settled.")

    async def confirm_by_a_cent_more(bank):
        [row] = await list_open(bank.pool, bank_customer_id(bank.seed))
        about = {"customers": (row.customer_id,), "references": (row.instruction_id,), "attempt": 1}
        about |= {"caller": "test", "instruction_id": row.instruction_id}
        at = et_instant(row.settles_on + timedelta(days=3), 9)
        await bank.engine.submit(ReportInstruction(key=ids.new(), status=InstructionStatus.SENT, **about))
        object.__setattr__(bank.settings, "dealers", ("citadel", "jpm"))
        await ClockStepper(bank).set_to(at)
        what = {"cusip": row.cusip, "units": row.units, "money": row.money + 1, "settled_on": row.settles_on}
        await bank.engine.submit(ConfirmSettlement(key=ids.new(), **about, **what))

    prepare(confirm_by_a_cent_more)
    status, said = run("settlement", "show", COLUMNS="300")
    assert (status, "Its money is" in said, "1 fails, which cost" in said) == (0, True, True), said
    instruction, difference = list(dict.fromkeys(ID.findall(said)))
    assert run("settlement", "send", instruction, "--reason", "why")[0] == 1
    confirmed(run, run("settlement", "dismiss", difference, "--reason", "sent again"))
    assert run("settlement", "accept", difference, "--reason", "late")[0] == 1
    assert "0 fails" not in run("settlement", "show")[1]
