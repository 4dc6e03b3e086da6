"""Counterparties over HTTP: Pockets of this bank, linked by their network address."""

import msgspec
import pytest
from tests.support.payees import ADA, CONTOSO, HOME, abroad, ach, wallet, wire
from tests.support.world import UNKNOWN

from billfold.accounts.counterparties.routes import CreateCounterparty
from billfold.http.raw_request import decode
from billfold.platform.errors import InvalidInput

NAMED = {"type": "business", "business_name": "Northwind"}


def path_of(pocket, counterparty=None):
    path = f"/api/v2/customers/{pocket.customer}/counterparties/"
    return path if counterparty is None else f"{path}{counterparty}/"


async def address_of(world, pocket):
    shown = await world.get(f"{pocket.path}portals/{pocket.portal}/")
    return shown["network_address"]


def on_us(address, **fields):
    return {"type": "on_us", "counterparty_name": NAMED, "account_number": address, **fields}


async def test_an_on_us_counterparty_is_linked_immediately_by_its_network_address(world, other_partner):
    pocket, target = await world.pocket(), await other_partner.pocket()
    address = await address_of(other_partner, target)
    made = await world.post(path_of(pocket), on_us(address, display_name="The supplier"))
    assert (made["type"], made["status"], made["object_type"]) == ("on_us", "LINKED", "Counterparty")
    assert (made["counterparty_name"], made["display_name"]) == ("Northwind", "The supplier")
    assert made["account_number"] == address
    assert made["time_created"] == "2025-06-02T13:00:00Z"
    check = made["verification"]
    assert (check["type"], check["status"]) == ("name_match", "APPROVED")
    assert (check["name_match"], check["registered_name"]) == ("MATCH", "N***")
    assert check["supporting_documents"] == []
    assert check["id"]
    assert await world.get(path_of(pocket, made["id"])) == made
    # The owner of the Pocket is not disclosed.
    assert target.id not in str(made)
    assert target.customer not in str(made)


async def test_a_person_is_named_by_both_names(world):
    pocket, target = await world.pocket(), await world.pocket()
    name = {"type": "individual", "first_name": "Ada", "last_name": "Stone"}
    body = on_us(await address_of(world, target)) | {"counterparty_name": name}
    assert (await world.post(path_of(pocket), body))["counterparty_name"] == "Ada Stone"


async def test_a_transfer_to_a_counterparty_with_a_mismatched_name_is_refused(world, other_partner):
    pocket, target = await world.funded(1_000_00), await other_partner.pocket()
    address = await address_of(other_partner, target)
    made = await world.post(path_of(pocket), on_us(address, counterparty_name=CONTOSO))
    check = made["verification"]
    assert (made["status"], check["type"], check["status"]) == ("UNLINKED", "name_match", "REJECTED")
    assert (check["name_match"], check["registered_name"]) == ("NO_MATCH", "N***")
    body = {"type": "PEER_TO_PEER", "from_account": {"id": pocket.id}, "counterparty_id": made["id"], "amount_usdc": 1}
    await world.refused("POST", "/api/v1/transfers/on-us/", body, status=422, code="counterparty-not-verified")
    for nth in range(19):
        await world.post(path_of(pocket), on_us(address, counterparty_name={**ADA, "last_name": f"N{nth}"}))
    await world.refused("POST", path_of(pocket), on_us(address), status=429, code="name-checks-exhausted")


async def test_an_unlinked_counterparty_can_no_longer_be_changed(world):
    pocket, target = await world.pocket(), await world.pocket()
    made = await world.post(path_of(pocket), on_us(await address_of(world, target)))
    path = path_of(pocket, made["id"])
    assert made["display_name"] is None
    assert (await world.patch(path, {"display_name": "Rent"}))["display_name"] == "Rent"
    assert (await world.patch(path, {"display_name": None}))["display_name"] is None
    gone = await world.patch(path, {"status": "UNLINKED"})
    assert gone["status"] == "UNLINKED"
    assert await world.get(path) == gone
    for body in ({"status": "UNLINKED"}, {"display_name": "again"}):
        await world.refused("PATCH", path, body, status=409, code="counterparty-not-linked")


async def test_counterparties_are_paged_and_filtered_by_status_and_type(world):
    pocket, other = await world.pocket(), await world.pocket()
    address = await address_of(world, other)
    made = [await world.post(path_of(pocket), on_us(address)) for _ in range(5)]
    await world.post(path_of(other), on_us(await address_of(world, pocket)))
    await world.patch(path_of(pocket, made[0]["id"]), {"status": "UNLINKED"})
    listed = await world.pages(path_of(pocket))
    assert {each["id"] for each in listed} == {each["id"] for each in made}
    for name in ("status", "status[]"):
        gone = await world.get(path_of(pocket), {name: "UNLINKED"})
        assert [each["id"] for each in gone["items"]] == [made[0]["id"]]
        both = await world.get(path_of(pocket), {name: ["UNLINKED", "LINKED"]})
        assert len(both["items"]) == 5
        await world.ask("GET", path_of(pocket), status=422, filters={name: "FRIEND"})
    for name in ("type", "type[]"):
        assert len((await world.get(path_of(pocket), {name: "on_us"}))["items"]) == 5
        assert (await world.get(path_of(pocket), {name: ["ach", "wire"]}))["items"] == []
        await world.ask("GET", path_of(pocket), status=422, filters={name: "pigeon"})


async def test_a_counterparty_at_a_closed_or_unknown_portal_address_is_refused(world):
    pocket, target = await world.pocket(), await world.pocket()
    address = await address_of(world, target)
    close = f"/api/v1/service-accounts/{target.id}/portals/{target.portal}/close/"
    await world.ask("POST", close, b"{}", status=204)
    for wrong in (address, "700000000000", "7" * 11, "seven"):
        await world.invalid("POST", path_of(pocket), on_us(wrong), loc="body.account_number")


PATH = "/api/v2/counterparties/"
NOT_PENDING = "micro-deposits-not-pending"


def counterparty_path(counterparty):
    return f"{PATH}{counterparty['id']}/"


def confirm(counterparty):
    return f"{counterparty_path(counterparty)}verify-micro-deposits/"


def by_id(counterparties):
    return sorted(counterparties, key=lambda each: each["id"])


async def test_every_counterparty_type_is_added_shown_and_listed(customer_desk, world):
    await customer_desk.pocket()
    made = [
        await customer_desk.post(PATH, body)
        for body in (
            wire(display_name="Supplier", wire_instructions="Invoice 7", institution_name="Chase"),
            ach(verification={"type": "micro_deposits"}),
            abroad(verification={"type": "unverified"}),
            wallet(),
        )
    ]
    assert [(each["type"], each["status"], each["verification"]["type"]) for each in made] == [
        ("wire", "PENDING", "incoming_wire"),
        ("ach", "PENDING", "micro_deposits"),
        ("international_wire", "LINKED", "unverified"),
        ("crypto_wallet_address", "LINKED", "unverified"),
    ]
    supplier, user, foreign, held = made
    assert supplier["verification"]["status"] == "PENDING_REVIEW"
    assert (supplier["routing_number"], supplier["account_number"]) == ("021000021", "000123456789")
    assert (supplier["institution_name"], supplier["wire_instructions"]) == ("Chase", "Invoice 7")
    assert supplier["address"]["city"] == "New York"
    assert (user["account_type"], user["counterparty_name"]) == ("CHECKING", "Ada Stone")
    assert user["verification"]["verification_failure_count"] == 0
    assert "deposits" not in user["verification"]
    assert (foreign["identifier_type"], foreign["account_number"]) == ("IBAN", "DE89370400440532013000")
    assert (held["chain"], held["asset"]) == ("BASE", "USDC")
    assert by_id(await customer_desk.pages(PATH)) == by_id(made)
    listed = (await customer_desk.get(PATH, {"type[]": ["ach", "wire"]}))["items"]
    assert by_id(listed) == by_id([user, supplier])
    listed = (await customer_desk.get(PATH, {"status": "LINKED"}))["items"]
    assert by_id(listed) == by_id([held, foreign])
    assert await customer_desk.get(counterparty_path(held)) == held
    seen = await world.get(f"/api/v2/customers/{customer_desk.team.customer}/counterparties/")
    assert by_id(seen["items"]) == by_id(made)


@pytest.mark.parametrize("kind", ["incoming_wire", "micro_deposits"])
async def test_a_verification_type_unsuited_to_wallets_or_pockets_is_refused(customer_desk, world, kind):
    await customer_desk.pocket()
    pocket, target = await world.pocket(), await world.pocket()
    by_account = {"verification": {"type": kind}}
    of_pocket = on_us(await address_of(world, target), **by_account)
    for desk, path in ((customer_desk, PATH), (world, path_of(pocket))):
        for form in (wallet(**by_account), of_pocket):
            await desk.invalid("POST", path, form, loc="body.verification.type")
    assert await customer_desk.bank.pool.fetchval("SELECT count(*) FROM counterparty") == 0


@pytest.mark.parametrize(
    ("body", "places"),
    [
        (wire(address=HOME | {"state": None}), ["address.state"]),
        (wire(address=HOME | {"country": "XX"}), ["address.country"]),
        (wire(account_number="1"), ["account_number"]),
        (wire(verification={"type": "supporting_documents"}), ["verification.document_ids"]),
        (wire(verification={"type": "incoming_wire", "document_ids": [UNKNOWN]}), ["verification.document_ids"]),
        (wire(verification={"type": "micro_deposits"}), ["verification.type"]),
        (wire(verification={"type": "pre_verified"}), ["verification.type"]),
        (wire(wire_instructions="x" * 141), ["wire_instructions"]),
        (ach(verification={"type": "unverified"}), ["verification.type"]),
        (ach(account_number="123", routing_number="12"), ["account_number", "routing_number"]),
        (ach(account_type="SHARES"), ["account_type"]),
        (ach(identifier="1"), ["identifier"]),
        (abroad(routing_number="COBAZZFF"), ["routing_number"]),
        (abroad(routing_number=None), ["routing_number"]),
        (abroad(identifier_code="ABA"), ["identifier_code"]),
        (abroad(identifier_type="IBAN", identifier="12345678"), ["identifier"]),
        (abroad(identifier="COBADEFF", account_number="DE99", routing_number="DEUTDEFF"), ["routing_number"]),
        (wallet(chain="SOLANA"), ["wallet_address"]),
        (wallet(wallet_address="0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266"), ["wallet_address"]),
        (wallet(chain="DOGE"), ["chain"]),
        (wallet(display_name="x"), ["display_name"]),
        (on_us("700000000000", counterparty_name="Contoso"), ["counterparty_name"]),
        (on_us("700000000000", routing_number="021000021"), ["routing_number"]),
        ({"type": "pigeon"}, ["type"]),
        ({}, ["type"]),
    ],
)
def test_errors_of_a_counterparty_body_are_located_at_their_fields(body, places):
    assert sorted(mistakes(body)) == [f"body.{each}" for each in places]


def mistakes(body):
    """Return the fields at which a body is refused."""
    try:
        decode(msgspec.json.encode(body), CreateCounterparty)
    except InvalidInput as wrong:
        return [".".join(map(str, each.loc)) for each in wrong.errors]
    return []


async def test_both_layouts_of_an_international_account_give_the_same_counterparty(customer_desk):
    await customer_desk.pocket()
    first = await customer_desk.post(PATH, abroad())
    turned = abroad(identifier="cobadeffxxx", account_number="DE89370400440532013000")
    turned.pop("routing_number")
    second = await customer_desk.post(PATH, turned)
    for field in ("routing_number", "account_number", "identifier_type", "address"):
        assert first[field] == second[field]
    plain = await customer_desk.post(PATH, abroad(identifier="12-345/6", routing_number="DEUTDEFF"))
    assert (plain["identifier_type"], plain["account_number"]) == ("ACCOUNT_NUMBER", "12-345/6")


async def test_a_repeated_deposit_confirmation_counts_as_one_attempt(customer_desk, other_customer, world):
    await customer_desk.pocket()
    made = await customer_desk.post(PATH, ach(verification={"type": "micro_deposits"}))
    await world.days(2)
    for body in ({"amounts": [11]}, {"amounts": [11, 22, 33]}, {"amounts": [0, 11]}, {}):
        await customer_desk.ask("POST", confirm(made), body, status=422)
    key = "a key"
    for _ in range(2):  # a request that is repeated is one try
        problem = await customer_desk.refused(
            "POST", confirm(made), {"amounts": [11, 12]}, status=422, code="micro-deposits-mismatch", key=key
        )
        assert problem["tries_left"] == 2
    assert (await customer_desk.get(counterparty_path(made)))["verification"]["verification_failure_count"] == 1
    await other_customer.ask("POST", confirm(made), {"amounts": [11, 22]}, status=404)
    done = await customer_desk.post(confirm(made), {"amounts": [22, 11]}, status=200)
    assert (done["status"], done["verification"]["status"]) == ("VERIFIED", "APPROVED")
    await customer_desk.refused("POST", confirm(made), {"amounts": [22, 11]}, status=409, code=NOT_PENDING)


async def test_a_wire_from_the_account_verifies_it_and_notifies_the_team(customer_desk, world):
    pocket = await customer_desk.pocket()
    waiting = await customer_desk.post(PATH, wire())
    late = await customer_desk.post(PATH, wire(identifier="4711"))
    sent = {
        "portal_id": pocket.portal,
        "amount_usdc": 1_00,
        "sender_name": "Contoso",
        "sender_account_number": "000123456789",
        "sender_routing_number": "021000021",
    }
    await world.ask("POST", "/api/v1/sandbox/wire/", sent, status=202)
    done = await customer_desk.get(counterparty_path(waiting))
    assert (done["status"], done["verification"]["status"]) == ("VERIFIED", "APPROVED")
    (moved,) = (await customer_desk.get("/api/v2/transactions/"))["items"]
    assert moved["counterparty_id"] == waiting["id"]
    told = (await customer_desk.get("/api/v1/notifications/"))["items"]
    said = "The counterparty Contoso was verified."
    assert said in [each["description"] for each in told]
    # Another account waits for ninety days.
    await world.post("/api/v1/sandbox/clock/advance/", {"seconds": 89 * 86_400}, status=200)
    assert (await customer_desk.get(counterparty_path(late)))["status"] == "PENDING"
    await world.post("/api/v1/sandbox/clock/advance/", {"seconds": 2 * 86_400}, status=200)
    ended = await customer_desk.get(counterparty_path(late))
    assert (ended["status"], ended["verification"]["status"]) == ("UNLINKED", "EXPIRED")
