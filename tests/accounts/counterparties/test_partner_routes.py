"""Counterparties over HTTP: Pockets of this bank, linked by their network address."""

import pytest
from tests.support.partner_desk import UNKNOWN

NAMED = {"type": "business", "business_name": "Contoso"}


def path_of(pocket, counterparty=None):
    path = f"/api/v2/customers/{pocket.customer}/counterparties/"
    return path if counterparty is None else f"{path}{counterparty}/"


async def address_of(partner_desk, pocket):
    shown = await partner_desk.get(f"{pocket.path}portals/{pocket.portal}/")
    return shown["network_address"]


def on_us(address, **fields):
    return {"type": "on_us", "counterparty_name": NAMED, "account_number": address, **fields}


async def test_a_counterparty_is_linked_at_once_by_its_address(partner_desk, other_partner):
    pocket, target = await partner_desk.pocket(), await other_partner.pocket()
    address = await address_of(other_partner, target)
    made = await partner_desk.post(path_of(pocket), on_us(address, display_name="The supplier"))
    assert (made["type"], made["status"], made["object_type"]) == ("on_us", "LINKED", "Counterparty")
    assert (made["counterparty_name"], made["display_name"]) == ("Contoso", "The supplier")
    assert made["account_number"] == address
    assert made["time_created"] == "2025-06-02T13:00:00Z"
    check = made["verification"]
    assert (check["type"], check["status"]) == ("name_match", "NOT_REQUIRED")
    assert check["supporting_documents"] == []
    assert check["id"]
    assert await partner_desk.get(path_of(pocket, made["id"])) == made
    # Whose Pocket it is stays the bank's knowledge.
    assert target.id not in str(made)
    assert target.customer not in str(made)


async def test_a_person_is_named_by_both_names(partner_desk):
    pocket, target = await partner_desk.pocket(), await partner_desk.pocket()
    name = {"type": "individual", "first_name": "Ada", "last_name": "Stone"}
    body = on_us(await address_of(partner_desk, target)) | {"counterparty_name": name}
    assert (await partner_desk.post(path_of(pocket), body))["counterparty_name"] == "Ada Stone"


async def test_a_counterparty_is_renamed_and_unlinked_for_ever(partner_desk):
    pocket, target = await partner_desk.pocket(), await partner_desk.pocket()
    made = await partner_desk.post(path_of(pocket), on_us(await address_of(partner_desk, target)))
    path = path_of(pocket, made["id"])
    assert made["display_name"] is None
    assert (await partner_desk.patch(path, {"display_name": "Rent"}))["display_name"] == "Rent"
    assert (await partner_desk.patch(path, {"display_name": None}))["display_name"] is None
    gone = await partner_desk.patch(path, {"status": "UNLINKED"})
    assert gone["status"] == "UNLINKED"
    assert await partner_desk.get(path) == gone
    for body in ({"status": "UNLINKED"}, {"display_name": "again"}):
        await partner_desk.refused("PATCH", path, body, status=409, code="counterparty-not-linked")


async def test_counterparties_are_listed_page_by_page_and_by_state_and_type(partner_desk):
    pocket, other = await partner_desk.pocket(), await partner_desk.pocket()
    address = await address_of(partner_desk, other)
    made = [await partner_desk.post(path_of(pocket), on_us(address)) for _ in range(5)]
    await partner_desk.post(path_of(other), on_us(await address_of(partner_desk, pocket)))
    await partner_desk.patch(path_of(pocket, made[0]["id"]), {"status": "UNLINKED"})
    listed = await partner_desk.pages(path_of(pocket))
    assert {each["id"] for each in listed} == {each["id"] for each in made}
    for name in ("status", "status[]"):
        gone = await partner_desk.get(path_of(pocket), {name: "UNLINKED"})
        assert [each["id"] for each in gone["items"]] == [made[0]["id"]]
        both = await partner_desk.get(path_of(pocket), {name: ["UNLINKED", "LINKED"]})
        assert len(both["items"]) == 5
        await partner_desk.ask("GET", path_of(pocket), status=422, filters={name: "FRIEND"})
    for name in ("type", "type[]"):
        assert len((await partner_desk.get(path_of(pocket), {name: "on_us"}))["items"]) == 5
        assert (await partner_desk.get(path_of(pocket), {name: ["ach", "wire"]}))["items"] == []
        await partner_desk.ask("GET", path_of(pocket), status=422, filters={name: "pigeon"})


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"account_number": None}, "body.account_number"),
        ({"account_number": "700000000000"}, "body.account_number"),
        ({"account_number": "7" * 11}, "body.account_number"),
        ({"account_number": "seven"}, "body.account_number"),
        ({"account_number": 7}, "body.account_number"),
        ({"counterparty_name": "Contoso"}, "body.counterparty_name"),
        ({"counterparty_name": {"type": "business"}}, "body.counterparty_name.business_name"),
        ({"counterparty_name": {"type": "cat", "name": "Tom"}}, "body.counterparty_name.type"),
        ({"display_name": ""}, "body.display_name"),
        ({"routing_number": "021000021"}, "body.routing_number"),
        ({"verification": {"type": "unverified"}}, "body.verification.type"),
        ({"verification": {"type": "incoming_wire", "x": 1}}, "body.verification.x"),
        ({"verification": {}}, "body.verification.type"),
        ({"type": "pigeon"}, "body.type"),
        ({"colour": "red"}, "body.colour"),
    ],
)
async def test_nobody_is_linked_when_the_request_is_malformed(partner_desk, change, loc):
    pocket = await partner_desk.pocket()
    body = on_us(await address_of(partner_desk, await partner_desk.pocket())) | change
    await partner_desk.invalid("POST", path_of(pocket), body, loc=loc)
    assert (await partner_desk.counts())["counterparty"] == 0


async def test_an_address_that_was_closed_leads_nowhere(partner_desk):
    pocket, target = await partner_desk.pocket(), await partner_desk.pocket()
    address = await address_of(partner_desk, target)
    close = f"/api/v1/service-accounts/{target.id}/portals/{target.portal}/close/"
    await partner_desk.ask("POST", close, b"{}", status=204)
    await partner_desk.invalid("POST", path_of(pocket), on_us(address), loc="body.account_number")


async def test_a_counterparty_is_not_there_for_others_nor_under_another_customer(partner_desk, other_partner):
    pocket, other = await partner_desk.pocket(), await partner_desk.pocket()
    made = await partner_desk.post(path_of(pocket), on_us(await address_of(partner_desk, other)))
    change = {"display_name": "mine"}
    for side, owner in ((other_partner, pocket), (partner_desk, other)):
        path = path_of(owner, made["id"])
        await side.refused("GET", path, status=404, code="not-found")
        await side.refused("PATCH", path, change, status=404, code="not-found")
    await other_partner.refused("GET", path_of(pocket), status=404, code="not-found")
    body = on_us(await address_of(partner_desk, other))
    await other_partner.refused("POST", path_of(pocket), body, status=404, code="not-found")
    await partner_desk.refused("GET", path_of(pocket, UNKNOWN), status=404, code="not-found")
    await partner_desk.invalid("GET", path_of(pocket, "mine"), loc="path.counterparty_id")
    path = path_of(pocket, made["id"])
    await partner_desk.invalid("PATCH", path, {}, loc="body")
    await partner_desk.invalid("PATCH", path, {"status": "LINKED"}, loc="body.status")
