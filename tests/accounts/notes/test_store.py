"""Notes over HTTP: an integrator's ids and metadata are attached, found, changed, and kept from others."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from tests.support import payees
from tests.support.whole_bank import expect_clean

FOUND = {"external_id": "inv-1"}
NASTY = {"formula": "=1+1", "html": "<script>alert(1)</script>", "sql": "') OR 1=1 --", "a.b:c": "\U0001d54f" * 500}


async def test_ids_and_metadata_of_objects_are_attached_found_and_changed(world):
    customer = await world.customer()
    pocket = await world.funded(1_000_00, customer, external_id="inv-1", metadata={"team": "a"})
    other = await world.pocket(customer, metadata=NASTY)
    path = f"/api/v2/customers/{customer}/pockets/"
    shown = await world.get(pocket.path)
    assert (shown["external_id"], shown["metadata"]) == ("inv-1", {"team": "a"})
    assert [each["id"] for each in (await world.get(path, FOUND))["items"]] == [pocket.id]
    assert [each["metadata"] for each in await world.pages(path, {"metadata[sql]": NASTY["sql"]})] == [NASTY]
    assert await world.pages(path, {"metadata[team]": "a", "metadata[sql]": "x"}) == []
    await world.invalid("GET", path, loc="query.external_id", filters=FOUND | {"metadata[team]": "a"})
    taken = await world.refused("PATCH", f"{path}{other.id}/", FOUND, status=409, code="external-id-taken")
    assert taken["id"] == pocket.id
    changed = await world.patch(f"{path}{pocket.id}/", {"external_id": None, "metadata": {"team": "b"}})
    assert (changed["external_id"], changed["metadata"]) == (None, {"team": "b"})
    changed = await world.patch(f"{path}{other.id}/", FOUND)
    assert (changed["external_id"], changed["metadata"]) == ("inv-1", NASTY)


async def test_each_kind_has_ids_of_its_own_and_verify_reports_a_changed_note(world):
    customer = await world.customer()
    pocket = await world.funded(1_000_00, customer, **FOUND)
    other = await world.pocket(customer)
    portals = f"{pocket.path}portals/"
    portal = await world.post(portals, {"name": "Payroll", **FOUND})
    assert [each["id"] for each in (await world.get(portals, FOUND))["items"]] == [portal["id"]]
    await world.patch(f"{portals}{portal['id']}/", {"metadata": {"k": "v"}})
    assert [each["id"] for each in await world.pages(portals, {"metadata[k]": "v"})] == [portal["id"]]
    paid = f"/api/v2/customers/{customer}/counterparties/"
    payee = await world.post(paid, payees.ach(**FOUND))
    assert [each["id"] for each in (await world.get(paid, FOUND))["items"]] == [payee["id"]]
    payee = await world.patch(f"{paid}{payee['id']}/", {"metadata": {"k": "v"}})
    assert (payee["external_id"], payee["metadata"]) == ("inv-1", {"k": "v"})
    moved = await world.transfer(pocket, other, 100_00, **FOUND, metadata=NASTY)
    assert (moved["external_id"], moved["metadata"]) == ("inv-1", NASTY)
    shown = await world.get(f"/api/v1/transfers/on-us/{moved['id']}/")
    assert shown == moved
    stored = str([*map(dict, await world.bank.pool.fetch("SELECT * FROM object_note"))])
    assert "inv-1" not in stored
    assert "script" not in stored
    await world.bank.pool.execute("UPDATE object_note SET kind = 'card' WHERE kind = 'transfer'")
    with pytest.raises(AssertionError, match="object_note"):
        await expect_clean(world.bank)
    await world.bank.pool.execute("UPDATE object_note SET kind = 'transfer' WHERE kind = 'card'")


async def test_an_external_id_is_given_once_by_concurrent_requests_and_not_by_a_repeated_one(world):
    customer = await world.customer()
    path = f"/api/v2/customers/{customer}/pockets/"
    body = {"pocket_name": "P", "deposit_strategy_id": "UST-4W", "external_id": "once"}
    answers = await asyncio.gather(*(world.send("POST", path, body) for _ in range(5)))
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409, 409]
    made = next(each.json() for each in answers if each.status_code == 201)
    assert {each.json()["id"] for each in answers} == {made["id"]}
    key = str(uuid4())
    first = await world.post(path, {**body, "external_id": "two"}, key=key)
    assert await world.post(path, {**body, "external_id": "two"}, key=key) == first
    changed = {**body, "external_id": "two", "metadata": {"k": "v"}}
    await world.refused("POST", path, changed, key=key, status=422, code="idempotency-key-reused")
    # The id of another customer is free, and finds nothing of theirs.
    other = await world.customer("Contoso")
    theirs = f"/api/v2/customers/{other}/pockets/"
    assert (await world.get(theirs, {"external_id": "once"}))["items"] == []
    assert (await world.post(theirs, body))["external_id"] == "once"


@pytest.mark.parametrize(
    ("note", "place"),
    [
        ({"external_id": ""}, "external_id"),
        ({"external_id": "with space"}, "external_id"),
        ({"external_id": "x" * 101}, "external_id"),
        ({"metadata": {"k" * 41: "v"}}, "metadata"),
        ({"metadata": {"a]b": "v"}}, "metadata"),
        ({"metadata": {"k": "v" * 501}}, "metadata"),
        ({"metadata": {"k": {"deep": "v"}}}, "metadata"),
        ({"metadata": {"k": "a\x00b"}}, "metadata"),
        ({"metadata": {f"k{n}": "v" for n in range(51)}}, "metadata"),
    ],
)
async def test_a_note_beyond_its_limits_is_refused(world, note, place):
    body = {"pocket_name": "P", "deposit_strategy_id": "UST-4W", **note}
    answer = await world.send("POST", f"/api/v2/customers/{uuid4()}/pockets/", body)
    assert answer.status_code == 422, answer.text
    assert place in str(answer.json()["detail"])


async def test_payments_are_listed_by_status_time_amount_payee_and_note(partner_desks):
    world = await partner_desks("acme", features=("wires",))
    customer = await world.customer()
    pocket = await world.funded(10_000_00, customer)
    payee = await world.post(f"/api/v2/customers/{customer}/counterparties/", payees.wire())
    verified = {"counterparty_id": payee["id"], "status": "APPROVED"}
    await world.ask("POST", "/api/v1/sandbox/counterparty-verification/", verified, status=202)
    path = f"/api/v1/service-accounts/{pocket.id}/wires/"
    wire_id = str(uuid4())
    asked = {"counterparty_id": payee["id"], "amount_usdc": 100_00, "wire_id": wire_id, **FOUND, "metadata": {"k": "v"}}
    wire = await world.post(path, asked)
    assert (await world.post(path, asked))["id"] == wire["id"]
    await world.refused("POST", path, {**asked, "metadata": {}}, status=409, code="duplicate-id")
    await world.refused("POST", path, {**asked, "wire_id": str(uuid4())}, status=409, code="external-id-taken")
    of = {"customer_id": customer}
    assert [each["id"] for each in (await world.get("/api/v1/wires/", of | FOUND))["items"]] == [wire_id]
    await world.invalid("GET", "/api/v1/wires/", loc="query.customer_id", filters=FOUND)
    cases: list[tuple[dict[str, Any], int]] = [
        ({"metadata[k]": "v"}, 1),
        ({"metadata[k]": "w"}, 0),
        ({"status[]": "PENDING", "amount_from": 100_00, "amount_to": 100_00}, 1),
        ({"amount_from": 100_01, "counterparty_id": payee["id"]}, 0),
        ({"time_created_from": "2025-06-03", "direction": "INCOMING"}, 0),
        ({"time_created_to": "2025-06-02"}, 2),
    ]
    for filters, found in cases:
        assert len((await world.get("/api/v1/wires/", of | filters))["items"]) == found, filters


async def test_notes_of_payments_cards_customers_and_applications_are_changed_by_their_partner_only(
    world, other_partner, customer_desks
):
    customer = await world.customer()
    pocket, other = await world.funded(1_000_00, customer), await world.pocket(customer)
    moved = await world.transfer(pocket, other, 100_00)
    wire = (await world.get("/api/v1/wires/", {"customer_id": customer}))["items"][0]
    application = await world.post("/api/v1/business-applications/", {"name": "Fabrikam"})
    paths = [
        f"/api/v1/transfers/on-us/{moved['id']}/",
        f"/api/v1/wires/{wire['id']}/",
        f"/api/v1/customers/{customer}/",
        f"/api/v1/applications/{application['id']}/note/",
    ]
    for place, path in enumerate(paths):
        note = {"external_id": f"id-{place}", "metadata": {"k": str(place)}}
        changed = await world.patch(path, note)
        assert {name: changed[name] for name in note} == note
        assert (await world.get(path)) == changed
        await other_partner.refused("PATCH", path, note, status=404, code="not-found")
        await world.invalid("PATCH", path, {"metadata": {"k": 1}}, loc="body.metadata....")
        await world.invalid("PATCH", path, {}, loc="body")
    closing = {"external_id": "closed", "status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    await world.invalid("PATCH", paths[2], closing, loc="body.status")
    taken = await world.refused("PATCH", paths[1], {"external_id": "id-0"}, status=409, code="external-id-taken")
    assert taken["id"] == moved["id"]
    for lookup, found in (
        ("/api/v1/customers/", customer),
        ("/api/v1/business-applications/", application["id"]),
    ):
        number = "2" if found == customer else "3"
        for filters in ({"external_id": f"id-{number}"}, {"metadata[k]": number}):
            assert [each["id"] for each in (await world.get(lookup, filters))["items"]] == [found]
            assert (await other_partner.get(lookup, filters))["items"] == []
        assert (await world.get(lookup, {"metadata[k]": "0"}))["items"] == []
    # Another customer of the partner cannot have the id; the customer itself does not see its partner's note.
    await world.refused(
        "PATCH",
        f"/api/v1/customers/{await world.customer('Contoso')}/",
        {"external_id": "id-2"},
        status=409,
        code="external-id-taken",
    )
    member = await customer_desks(customer)
    assert (await member.get("/api/v1/customer/"))["metadata"] == {}
    assert (await member.get(paths[0]))["external_id"] == "id-0"
    viewer = await customer_desks(customer, role="VIEWER")
    await viewer.refused("PATCH", paths[0], {"external_id": None}, status=403, code="forbidden")
    stranger = await customer_desks(await world.customer("Tailspin"))
    await stranger.refused("PATCH", paths[0], {"external_id": None}, status=404, code="not-found")
    assert (await member.patch(paths[0], {"external_id": None}))["metadata"] == {"k": "0"}
