"""Data about other parties of payments is shown to its recipients and appears in no dump."""

from uuid import UUID

from tests.journeys.test_ach import Originator
from tests.journeys.test_nothing_personal_in_a_dump import decodings, dumped
from tests.payments.ach.test_inbound_files import Room, entry, file_of, returned
from tests.support.fedwire import Fedwire, changed

from billfold.cli.command import submit_as_operator
from billfold.data_keys.keys import DataKeys
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.ach.commands import ReturnAchEntry
from billfold.payments.ach.nacha.records import PaymentAddenda
from billfold.payments.suspense.decisions import details_for_owner
from billfold.payments.suspense.rules import AssignFromSuspense
from billfold.payments.suspense.store import list_items
from billfold.payments.wires.iso20022.types import Account, Party, PostalAddress
from billfold.platform import ids
from billfold.verify.runner import verify_bank

HOME = PostalAddress(street="9 Thistledown Row", town="Marrowby", country="US")
PAYER = {"debtor": Party(name="Acme", address=HOME), "debtor_account": Account(number="880011223344")}
TEXTS = {"remittance": "For the piano", "instructions": "Ring the bell"}
UNKNOWN, IDENTIFICATION, INVOICE, CUSTODIAN = "665544332211", "ID88213907", "INV 7731 OF MAY", "CUST99887766"
SAID = (
    b"id88213907",
    b"inv 7731",
    b"665544332211",
    b"880011223344",
    b"thistledown",
    b"marrowby",
    b"for the piano",
    b"ring the bell",
    b"cust99887766",
)
_ENTRY = "SELECT customer_id, ach_id FROM ach_entry WHERE amount = $1"
BILL = "912797PT8"
_PLAIN = "UPDATE suspense_item SET details = $2 WHERE item_id = $1"


async def places(bank, logged=""):
    """Return where any of the secret texts is found in the database or the log, decoded."""
    tables = await dumped(bank) | {"log": logged.encode()}
    found = {
        name: {said for each in decodings(content) for said in SAID if said in each.lower()}
        for name, content in tables.items()
    }
    return {name: said for name, said in found.items() if said}


class Rails:
    """The files that arrive for one Pocket, and those that go out."""

    def __init__(self, desk, pocket):
        self.desk, self.bank, self.pocket = desk, desk.bank, pocket
        self.ach, self.wire = Room(desk.bank), Fedwire(desk.bank)

    async def receive(self, account):
        line = {"individual_identification_number": IDENTIFICATION, "addenda": (PaymentAddenda(INVOICE),)}
        entries = (
            entry(1, account, **line),
            entry(2, account, transaction_code="27", amount=1_00, **line),
            entry(3, account, transaction_code="27", amount=900_000_00, **line),
            entry(4, UNKNOWN, amount=4_00, **line),
            entry(5, UNKNOWN, transaction_code="23", amount=0, **line),
            returned(
                6,
                "061199990009999",
                dfi_account_number=UNKNOWN,
                amount=6_00,
                individual_identification_number=IDENTIFICATION,
            ),
        )
        await self.ach.put("entries.ach", file_of(*entries))
        for number, to in enumerate((account, UNKNOWN)):
            payment = changed(await self.wire.payment(f"wire{number}", to, 70_00 + number), **PAYER, **TEXTS)
            await self.wire.drop(f"{number}.xml", payment)

    async def give_back(self):
        """Return an entry and the unclaimed payments; their files contain the incoming messages."""
        owner, ach_id = await self.bank.pool.fetchrow(_ENTRY, 1_00)
        await submit_as_operator(
            self.bank, ReturnAchEntry, owner, key=ids.new(), ach_id=ach_id, code="R10", references=(ach_id,)
        )
        await self.desk.days(2)

    async def assign(self, item):
        owner, portal, pocket = (UUID(each) for each in (self.pocket.customer, self.pocket.portal, self.pocket.id))
        await submit_as_operator(
            self.bank,
            AssignFromSuspense,
            bank_customer_id(self.bank.seed),
            owner,
            key=ids.new(),
            item_id=item.item_id,
            portal_id=portal,
            pocket_id=pocket,
            references=(item.item_id,),
            details=await details_for_owner(self.bank, item, owner),
        )

    def sent(self, rail):
        return "".join(path.read_text() for path in (self.ach.folder.parent / rail).rglob("*.*") if path.is_file())


async def test_payment_details_are_shown_to_their_parties_and_appear_in_no_dump(partner_desks, capfd):
    desk = await partner_desks("acme", features=("wires",))
    bank, pocket = desk.bank, await desk.funded(5_000_00)
    rails = Rails(desk, pocket)
    await rails.receive((await desk.get(f"{pocket.path}portals/{pocket.portal}/"))["account_number"])
    bills = {"account_id": pocket.id, "cusip": BILL, "quantity": 2, "counterparty_account": CUSTODIAN}
    await desk.ask("POST", "/api/v1/sandbox/security-transfer/", bills | {"direction": "IN"}, status=202)
    held = {each.amount: each for each in await list_items(bank.pool, status=None)}
    await rails.assign(held[6_00])
    await rails.give_back()
    await rails.wire.drop("refused.xml", await rails.wire.status(held[70_01].item_id, "AC04"))
    (refused,) = await list_items(bank.pool, status="HELD")
    await rails.assign(refused)

    shown = {each["amount"]["value"]: each for each in (await desk.get(f"{pocket.path}transactions/"))["items"]}
    for cents in (1_00, 500_00, 6_00):
        assert shown[cents]["individual_identification_number"] == IDENTIFICATION
    assert shown[500_00]["remittance_information"]["unstructured"] == [INVOICE]
    for cents in (70_00, 70_01):
        assert shown[cents]["remittance_information"]["unstructured"] == [shown[cents]["description"]]
        assert shown[cents]["description"] == TEXTS["remittance"]
        wire = await desk.get(f"/api/v1/wires/{shown[cents]['wire_id']}/")
        assert [wire["description"], wire["wire_instructions"]] == list(TEXTS.values())
    sent = rails.sent("ach/outbox") + rails.sent("ach/sent")
    assert (sent.count(IDENTIFICATION), sent.count(UNKNOWN)) == (4, 2)

    captured = capfd.readouterr()
    assert await places(bank, captured.out + captured.err) == {}
    async with bank.pool.acquire() as conn:
        assert (await verify_bank(conn, vault=bank.vault)).is_clean
    await bank.pool.execute(_PLAIN, refused.item_id, f'{{"account_number": "{UNKNOWN}"}}')
    assert await places(bank) == {"suspense_item": {UNKNOWN.encode()}}
    await bank.pool.execute(_PLAIN, refused.item_id, refused.details)


async def test_payments_are_booked_and_returned_after_the_customer_key_is_destroyed(partner_desks):
    desk = await partner_desks("acme", features=("wires",))
    bank, pocket = desk.bank, await desk.funded(5_000_00)
    originator = Originator(desk, pocket)
    made = await originator.pay(await originator.payee(), 250_00)
    await originator.sandbox("ach/submit/")
    await bank.ports[DataKeys].shred(bank.pool, UUID(pocket.customer), await bank.now())
    rails = Rails(desk, pocket)
    await rails.receive((await desk.get(f"{pocket.path}portals/{pocket.portal}/"))["account_number"])
    await originator.move(made, "change", code="C01", corrected="998877665544332")
    await originator.move(made, "return", code="R04")
    await rails.give_back()

    assert (await originator.now(made))["status"] == "FAILED"
    shown = (await desk.get(f"{pocket.path}transactions/"))["items"]
    assert [each["amount"]["value"] for each in shown] == [1_00, 250_00, 70_00, 1_00, 500_00, 250_00, 1_00, 5_000_00]
    assert [each["description"] for each in shown if each["type"] == "WIRE"] == [TEXTS["remittance"], "", ""]
    sent = rails.sent("ach/outbox") + rails.sent("ach/sent")
    assert (sent.count(IDENTIFICATION), sent.count(UNKNOWN)) == (5, 3)
    async with bank.pool.acquire() as conn:
        assert (await verify_bank(conn, vault=bank.vault)).is_clean
