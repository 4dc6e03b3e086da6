"""Directories of routing numbers: imported, replaced, refused, and looked up."""

import asyncio

import pytest
from tests.fixtures.cli import fetch

from billfold.payments.routing.directory import InvalidDirectory, read_directory
from billfold.payments.routing.store import replace_directory


def fedach(number="021000021", name="EXAMPLE BANK", *, new="000000000", status="1", day="041525"):
    return (
        f"{number}O0210012081{day}{new}{name:36}{'1 MAIN ST':36}{'NEW YORK':20}NY100010000{'2125550100'}{status}1     "
    )


def fedwire(number="021000021", name="EXAMPLE BANK", *, status="Y"):
    return f"{number}{'EXAMPLE NYC':18}{name:36}NY{'NEW YORK':25}{status} Y20250415"


async def test_a_routing_number_is_looked_up_in_the_directories_that_were_imported(world, customer_desk):
    path = "/api/v1/routing-numbers/021000021/"
    nothing = await world.get(path)
    assert (nothing["is_valid"], nothing["name"], nothing["ach"]) == (True, None, None)
    async with world.bank.pool.acquire() as conn:
        await replace_directory(
            conn, read_directory([fedach() + "\r\n", fedach("011000015", "MERGED", new="021000021")]).entries
        )
        await replace_directory(conn, read_directory([fedwire(status="N")]).entries)
    found = await customer_desk.get(path)
    assert (found["name"], found["ach"]["takes_payments"], found["wire"]["takes_payments"]) == (
        "EXAMPLE BANK",
        True,
        False,
    )
    assert (found["ach"]["city"], found["ach"]["state"], found["ach"]["revised_on"]) == ("NEW YORK", "NY", "2025-04-15")
    merged = await world.get("/api/v1/routing-numbers/011000015/")
    assert (merged["ach"]["replaced_by"], merged["wire"]) == ("021000021", None)
    async with world.bank.pool.acquire() as conn:
        await replace_directory(conn, read_directory([fedach(name="RENAMED")]).entries)
    assert (await world.get(path))["name"] == "RENAMED"
    assert (await world.get("/api/v1/routing-numbers/011000015/"))["name"] is None
    assert (await world.get("/api/v1/routing-numbers/021000022/"))["is_valid"] is False
    await world.invalid("GET", "/api/v1/routing-numbers/02100002x/", loc="path.number")


ODD = {
    "has 1 characters": "x",
    "has 101 characters": fedwire(),
    "has the routing number": fedach(),
    "has no routing number": fedach("021000022"),
    "has no routing number with a name": fedach("011000015", name=""),
    "has a date": fedach("011000015", day="139925"),
}


@pytest.mark.parametrize(("said", "line"), ODD.items())
def test_an_odd_line_of_a_directory_is_skipped_and_named(said, line):
    entries, odd = read_directory([fedach(), line, "\x1a"])
    assert ([each.routing_number for each in entries], len(odd)) == (["021000021"], 1)
    assert odd[0].startswith(f"line 2 {said}")


@pytest.mark.parametrize("lines", [[], ["x"], [fedach(), *list(ODD.values())[:2]]], ids=len)
def test_a_file_with_too_many_odd_lines_is_no_directory(lines):
    with pytest.raises(InvalidDirectory, match="lines cannot be read"):
        read_directory(lines)


def test_an_imported_directory_is_in_the_audit_log_of_the_bank(founded, database_dsn, tmp_path):
    (tmp_path / "fpddir.txt").write_text(fedwire() + "\nodd\n")
    status, said = founded("routing", "import", str(tmp_path / "fpddir.txt"))
    assert (status, "1 routing numbers of WIRE" in said, "line 2 has 3" in said) == (0, True, True), said
    found = asyncio.run(fetch(database_dsn, "SELECT action, resource_id, outcome FROM audit_entry"))
    assert ("routing_directory.imported", "WIRE", "SUCCESS") in [tuple(row) for row in found]
