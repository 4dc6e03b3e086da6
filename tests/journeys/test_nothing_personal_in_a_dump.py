"""Personal data of customers, their payees and their users appears in no dump, file, e-mail or log."""

import asyncio
import base64
import re
from itertools import chain
from uuid import UUID

import pytest
from tests.accounts.counterparties.test_linking_routes import link, path_of
from tests.documents.test_routes import PAGE, sent
from tests.support import payees
from tests.support.applications import MINORITY, Applicant
from tests.support.approvals import CHANGES, REQUESTS, decide, hold_roles, wire
from tests.web.steps import give_password, reset_link

from billfold.audit.rules import EntryFilter, open_details
from billfold.audit.store import list_entries
from billfold.cli.command import OperatorAction
from billfold.cli.context import CliError
from billfold.documents.store import get_document
from billfold.identity.users.contact_details import reseal_contact_details

ADDRESS = {"street_address": "7 Quillfeather Lane", "city": "Vantorp", "postal_code": "89507-4821", "country": "US"}
CONTACT = {"email": "treasury@quillfeather.example", "phone_number": "+17755550142", "address": ADDRESS}
TRUSTED = {"first_name": "Ottoline", "last_name": "Brackwater", "email": "ottoline@brackwater.example"}
BUSINESS_NUMBERS = {"identification_number": "47-1923847", "type": "EIN", "issuing_country": "US"}
PERSONAL_NUMBERS = {"identification_number": "536-22-8145", "identification_type": "SSN"}
CALLED = {"phone_number": CONTACT["phone_number"], "email": CONTACT["email"]}
WRITTEN_TO = {"name": {"first_name": "Ada", "last_name": "Marsh"}, **CALLED}
FOUNDER = (
    MINORITY
    | CALLED
    | {
        "address": ADDRESS | {"state": "NV"},
        "date_of_birth": "1971-03-19",
        "identification_number": PERSONAL_NUMBERS,
    }
)
SAID = (
    b"quillfeather",
    b"7755550142",
    b"vantorp",
    b"89507-4821",  # five digits alone are found in any ciphertext in hex, sooner or later
    b"ottoline",
    b"brackwater",
    b"passport of the founder",
    b"47-1923847",
    b"471923847",
    b"536-22-8145",
    b"536228145",
    b"1971-03-19",
)
DOCUMENT = PAGE.replace(b"%%EOF", b"% passport of the founder\n%%EOF")
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
_HEX = re.compile(rb"(?:[0-9a-f]{2}){8,}")


def decodings(content):
    """Yield the content, and the bytes encoded in it in base64 or hex."""
    yield content
    for text in _HEX.findall(content):
        yield bytes.fromhex(text.decode())
    for text in _BASE64.findall(content):
        altchars = b"-_" if set(text) & set(b"-_") else None
        for shift in range(4):  # it may begin anywhere in a longer text
            cut = text[shift:]
            yield base64.b64decode(cut + b"A" * (-len(cut) % 4), altchars=altchars)


def found_in(content, all_said=SAID):
    return {said for each in decodings(content) for said in all_said if said in each.lower()}


async def dumped(bank):
    """Return every table as COPY writes it, as a text and as bytes."""
    tables = {}
    for row in await bank.pool.fetch(_TABLES):
        parts: list[bytes] = []

        async def collect(data, parts=parts):
            parts.append(bytes(data))

        async with bank.pool.acquire() as conn:
            await conn.execute("RESET ROLE")
            await conn.copy_from_query(f'SELECT * FROM "{row["tablename"]}"', output=collect, format="text")
        tables[row["tablename"]] = b"".join(parts)
    return tables


async def places_of_personal_data(bank, logged, all_said=SAID):
    """Return where any of the secret texts is found: tables, files, e-mails, the log."""
    state = bank.settings.files_dir.parent
    files = {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}
    everything = chain((await dumped(bank)).items(), files.items(), [("log", logged.encode())])
    return {place: said for place, content in everything if (said := found_in(content, all_said))}


async def test_personal_data_of_customers_appears_in_no_dump_or_file(partner_desk, capfd):
    bank = partner_desk.bank
    made = await partner_desk.post("/api/v1/sandbox/customers/", {"name": "Q Holdings LLC"})
    path = f"/api/v1/customers/{made['id']}/"
    shown = await partner_desk.patch(path, CONTACT | {"trusted_contact": TRUSTED})
    upload = f"{path}documents/WIRE_COUNTERPARTY_VERIFICATION/file/"
    answer = await partner_desk.send("POST", upload, DOCUMENT, headers=sent())
    assert answer.status_code == 201, answer.text
    await partner_desk.invalid("PATCH", path, CONTACT | {"status": "CLOSED"}, loc="body.status")
    assert shown == await partner_desk.get(path)
    applicant = Applicant(partner_desk)
    own = {"identification_number": BUSINESS_NUMBERS, "contact": WRITTEN_TO, "website": None}
    for name, status in (("Approved LLC", "APPROVED"), ("Reject LLC", "REJECTED")):
        application = await applicant.filled(FOUNDER, name=name, **own)
        assert (await applicant.decided(application))["status"] == status
    await applicant.filled(FOUNDER, name="Unfinished LLC", uploaded=False, **own)
    while not await bank.pool.fetchval("SELECT count(*) FROM idempotency_key WHERE length(response_body) > 400"):
        await asyncio.sleep(0)  # responses are kept after they were sent

    captured = capfd.readouterr()
    assert await places_of_personal_data(bank, captured.out + captured.err) == {}
    for encoded in (base64.b64encode(b"x" + SAID[0]), SAID[0].hex().encode()):
        assert found_in(encoded) == {SAID[0]}, "the search sees through encodings"
    plain = '{"email": "treasury@quillfeather.example"}'
    await bank.pool.execute("UPDATE customer SET profile = $2 WHERE customer_id = $1", made["id"], plain)
    assert await places_of_personal_data(bank, "") == {"customer": {SAID[0]}}, "and into every table"
    document = await get_document(bank.pool, answer.json()["document_id"])
    assert document.file_sealed


PAYEE_HOME = {"street_address": "9 Marrowgate Row", "city": "Pellworth", "postal_code": "60699-4412", "country": "US"}
WALLET, FURTHER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "for further credit to 5550198812"
SAID_OF_PAYEES = (
    b"marrowgate",
    b"pellworth",
    b"60699-4412",
    b"77310004421987",
    b"8833012277",
    b"8833012279",
    b"4410998877",
    b"nl91abna0417164300",
    b"nl91 abna 0417 1643 00",
    WALLET.lower().encode(),
    b"5550198812",
)


FORMS = (
    payees.ach(account_number="8833012277", routing_number="091000019"),
    payees.ach(account_number="8833012279", verification={"type": "micro_deposits"}),
    payees.wire(identifier="77310004421987", address=PAYEE_HOME | {"state": "IL"}, wire_instructions=FURTHER),
    payees.abroad(identifier="NL91 ABNA 0417 1643 00", address=PAYEE_HOME | {"country": "NL"}),
    payees.wallet(wallet_address=WALLET),
)


@pytest.fixture
async def world(partner_desks):
    """The desk of a partner who sends wires."""
    return await partner_desks("acme", features=("wires",))


async def add_payees(admin, customer_world):
    """Add a counterparty of each kind and one that is linked at its bank; verify those that are paid."""
    made = [await admin.post("/api/v2/counterparties/", each) for each in FORMS]
    for form, shown in zip(FORMS, made, strict=True):
        given = {name: form[name] for name in form.keys() & {"wallet_address", "account_number", "wire_instructions"}}
        assert shown | given == shown == await admin.get(f"/api/v2/counterparties/{shown['id']}/")
    assert made[3]["account_number"] == "NL91ABNA0417164300"
    for each in made[0], made[2], made[3]:
        approved = {"counterparty_id": each["id"], "status": "APPROVED"}
        await customer_world.ask("POST", "/api/v1/sandbox/counterparty-verification/", approved, status=202)
    path = path_of(admin.team.customer, "linking-provider/")
    return [*made, (await customer_world.post(path, link("checking")))["items"][0]]


async def add_payees_for_approval(admin, approver, pocket, customer_world):
    """Request counterparties, one an account of this very bank, and approve them."""
    await hold_roles(admin.bank, UUID(admin.team.customer), "NEW_COUNTERPARTY")
    own = (await customer_world.get(f"{pocket.path}portals/"))["items"][0]
    owner = {"type": "business", "business_name": "Northwind"}
    known = payees.wire(routing_number=own["routing_number"], identifier=own["account_number"], counterparty_name=owner)
    for form in (known, FORMS[2]):
        waiting = await admin.post("/api/v2/counterparties/", form, status=202)
        shown = (await approver.get(f"{CHANGES}{waiting['id']}/"))["change"]["counterparty"]
        assert shown["details"]["address"] | form["address"] == shown["details"]["address"]
        await approver.patch(f"{CHANGES}{waiting['id']}/status/", {"status": "APPROVED"})
        assert ("Marrowgate" in (shown["holder_address"] or "")) == (form is known)


async def test_payee_details_appear_in_no_dump_or_file_except_rail_files(customer_desks, customer_world, capfd):
    bank, admin = customer_world.bank, await customer_desks()
    approver, pocket = await customer_desks(admin.team.customer, role="APPROVER"), await admin.pocket()
    await customer_world.wire(pocket, 500_000_00)
    home = PAYEE_HOME | {"state": "IL"}
    await customer_world.patch(f"/api/v1/customers/{admin.team.customer}/", {"address": home})
    to_return, _, domestic, abroad, _, to_change = await add_payees(admin, customer_world)
    account = f"/api/v1/service-accounts/{pocket.id}/"
    entries = []
    for each in (to_return, to_change):
        body = {"counterparty_id": each["id"], "direction": "CREDIT", "amount_usdc": 1_420_00}
        made = await customer_world.post(f"{account}ach-originating/", body, status=200)
        entries.append(made["id"])
    body = {"counterparty_id": abroad["id"], "amount_usdc": 700_00, "wire_instructions": FURTHER}
    assert (await customer_world.post(f"{account}wires/", body))["wire_instructions"] == FURTHER
    asked = await admin.post(REQUESTS, wire(pocket, 50_00, domestic["id"], wire_instructions=FURTHER))
    assert (await decide(approver, asked))["transfer"]["wire_instructions"] == FURTHER
    await add_payees_for_approval(admin, approver, pocket, customer_world)
    await customer_world.days(2)
    move = {"move": "change", "code": "C01", "corrected": "4410998877"}
    await customer_world.ask("POST", f"/api/v1/sandbox/ach/{entries[1]}/", move, status=202)
    await customer_world.days(1)
    assert (await customer_world.get(f"{account}ach-originating/{entries[0]}/"))["return_code"] == "R03"
    assert (await admin.get(f"/api/v2/counterparties/{to_change['id']}/"))["account_number"] == "4410998877"

    captured = capfd.readouterr()
    said = (*SAID_OF_PAYEES, to_change["account_number"].encode())
    found = await places_of_personal_data(bank, captured.out + captured.err, said)
    # A file in the folder of a rail contains what the other bank needs.
    handed_over = {place for place in found if "/rails/" in place}
    assert {place: said for place, said in found.items() if place not in handed_over} == {}
    numbers = {b"8833012277", b"77310004421987", b"nl91abna0417164300", b"8833012279"}
    assert set().union(*(found[place] for place in handed_over)) >= numbers, "and in the folder they are found"


async def fail(bank, email):
    """Run a command for an unknown user, as an operator."""

    async def work():
        raise CliError(f"There is no user {email!r}.", "See `billfold users list`.")

    with pytest.raises(CliError):
        await OperatorAction("users", "deactivate", {"email": email}).run_with_bank(bank, work)


async def test_contact_details_of_users_appear_in_no_dump_or_log(bank, anna, browser, new_browser, emails, capfd):
    said = (b"gristlewick", b"7755550177", b"northwind.example")
    person = {"first_name": "Ben", "last_name": "Ode", "phone_number": "+17755550177", "role": "MANAGER"}
    await anna.sign_in(browser)
    base, ben = f"/team/{anna.customer_id}", "ben@gristlewick.example"
    await browser.go(f"{base}/invite")
    assert (await browser.send(f"{base}/invite", email=ben, **person)).status_code == 303
    [text] = [text for subject, text in await emails() if subject == "Join Northwind"]
    guest, password = new_browser(), "lantern-gravel-otter"
    await guest.go("/invitation?link=" + text.partition("link=")[2].split()[0])
    assert (await guest.send("/invitation", password=password, again=password)).status_code == 303
    await hold_roles(bank, anna.customer_id)
    await browser.go(f"{base}/invite")
    assert (await browser.send(f"{base}/invite", email="cora@gristlewick.example", **person)).status_code == 202
    await give_password(new_browser(), "BEN@Gristlewick.example", "wrong")
    await new_browser().go(f"/sign-in?email={ben}")
    await emails()
    await reset_link(new_browser(), emails, ben)
    stranger = new_browser()
    await stranger.go("/forgot")
    await stranger.send("/forgot", email=anna.email)  # its e-mail waits
    await fail(bank, ben)
    await browser.go(base)
    assert ben in browser.text
    entries = await list_entries(bank.pool, EntryFilter(customer_id=anna.customer_id), limit=99)
    assert ben in {open_details(each, bank.vault).get("email") for each in entries}

    assert await places_of_personal_data(bank, "".join(capfd.readouterr()), said) == {}
    await bank.pool.execute("UPDATE user_account SET email = $1, email_index = NULL WHERE first_name = 'Ben'", ben)
    assert await places_of_personal_data(bank, "", said) == {"user_account": {b"gristlewick"}}
    assert await reseal_contact_details(bank, lambda _: None) == 1
    assert await places_of_personal_data(bank, "", said) == {}
