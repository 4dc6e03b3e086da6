"""Accounts linked at their own bank, and counterparties as v1 tells of them."""

from tests.support.payees import ach, wire

BODY = {"client_name": "Acme", "redirect_uri": "https://acme.example/back"}


def path_of(customer, rest=""):
    return f"/api/v1/customers/{customer}/counterparties/{rest}"


def link(*accounts, token="public-sandbox-1"):
    return {"public_token": token, "accounts": [{"id": each} for each in accounts]}


async def test_linked_accounts_get_the_verification_status_of_the_provider(world):
    pocket = await world.pocket()
    path = path_of(pocket.customer, "linking-provider/")
    opened = await world.post(f"{path}link-token/", BODY, status=200)
    assert opened["link_token"].startswith("link-sandbox-")
    assert opened["expiration"].endswith("Z")
    accounts = link("checking", "manual-savings", "fail")
    made = (await world.post(path, accounts))["items"]
    assert [(each["type"], each["status"], each["account_type"]) for each in made] == [
        ("ach", "LINKED", "CHECKING"),
        ("ach", "PENDING", "SAVINGS"),
        ("ach", "PENDING", "CHECKING"),
    ]
    assert {each["verification"]["type"] for each in made} == {"linking_provider"}
    assert {each["counterparty_name"] for each in made} == {"Northwind"}
    assert "access" not in str(made)
    for each in made:
        await world.ask("POST", path_of(pocket.customer, f"{each['id']}/{VERIFY}"), {}, status=204)
    listed = await world.get(path_of(pocket.customer))
    assert listed["count"] == 3
    told = {each["id"]: each["ach"] for each in listed["counterparties"]}
    assert [
        (told[each["id"]]["status"], told[each["id"]]["linking_provider"]["verification_status"]) for each in made
    ] == [("VERIFIED", "AUTOMATICALLY_VERIFIED"), ("VERIFIED", "MANUALLY_VERIFIED"), ("FAILED", "VERIFICATION_FAILED")]
    again = BODY | {"counterparty_id": made[1]["id"]}
    await world.post(f"{path}link-token/", again, status=200)


VERIFY = "linking-provider/verify/"


async def test_an_unlinkable_account_is_reported_at_its_field(world):
    pocket = await world.pocket()
    path = path_of(pocket.customer, "linking-provider/")
    for body, loc in (
        (link("x", token="stolen"), "body.public_token"),
        (link("unknown"), "body.accounts"),
        (link("x", "x"), "body.accounts"),
        (link(), "body.accounts"),
    ):
        await world.invalid("POST", path, body, loc=loc)
    for body, loc in (
        ({"client_name": "Acme"}, "body.redirect_uri"),
        (BODY | {"android_package_name": "x"}, "body.redirect_uri"),
        (BODY | {"redirect_uri": "http://acme.example"}, "body.redirect_uri"),
    ):
        await world.invalid("POST", f"{path}link-token/", body, loc=loc)
    payee = f"/api/v2/customers/{pocket.customer}/counterparties/"
    other = await world.post(payee, wire())
    await world.refused(
        "POST", path_of(pocket.customer, f"{other['id']}/{VERIFY}"), {}, status=422, code="counterparty-type-mismatch"
    )


async def test_v1_lists_only_ach_and_domestic_wire_counterparties(world, other_partner):
    pocket = await world.pocket()
    payee = f"/api/v2/customers/{pocket.customer}/counterparties/"
    paid, pulled = (await world.post(payee, wire(institution_name="Chase")), await world.post(payee, ach()))
    answer = await world.ask("GET", path_of(pocket.customer), status=200)
    assert {"deprecation", "sunset"} <= set(answer.headers)
    assert answer.json()["count"] == 2
    shown = await world.get(path_of(pocket.customer, f"{paid['id']}/"))
    assert shown["type"] == "WIRE"
    assert shown["wire"] == {
        "time_created": paid["time_created"],
        "verification_type": "INCOMING_WIRE",
        "status": "IN_PROGRESS",
        "account_number": "000123456789",
        "routing_number": "021000021",
        "name_on_account": "Contoso",
        "account_type": None,
        "institution_name": "Chase",
    }
    shown = await world.get(path_of(pocket.customer, f"{pulled['id']}/"))
    assert (shown["type"], shown["ach"]["account_type"]) == ("ACH", "CHECKING")
    await world.patch(f"{payee}{pulled['id']}/", {"status": "UNLINKED"})
    gone = await world.get(path_of(pocket.customer, f"{pulled['id']}/"))
    assert gone["ach"]["status"] == "FAILED"
    await other_partner.ask("GET", path_of(pocket.customer, f"{paid['id']}/"), status=404)
