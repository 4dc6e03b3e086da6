"""The file for the IRS, read back by the positions that Publication 1220 prints, one by one."""

import io
from datetime import date
from uuid import UUID

import pytest

from billfold.accounts.addresses import Address
from billfold.reports.tax.irs_file import IrsFile, Payer, require_records
from billfold.reports.tax.rules import Disposal, Filing, TaxForm, TaxYear, TinType, tax_line
from billfold.reports.tax.store import Recipient

PAYER = Payer(
    tin="123456789",
    control_code="1AB23",
    name="Billfold Sandbox Bank",
    address="1 Ledger Way, Wilmington, DE 19801, US",
    phone="+1 302 555 0142",
    contact="Tax Department",
    email="tax@bank.example",
)
HOME = Address(street_address="1 Main Street", city="New York", state="NY", postal_code="10001-2345", country="US")
PARIS = Address(street_address="1, rue de l'Étoile", city="Paris", state=None, postal_code="75017", country="FR")
# Publication 1220, Part C, Sections 2 to 8, for tax year 2025: first and last position as printed there.
COMMON = {"year": (2, 5), "sequence": (500, 507)}
T = COMMON | {
    "tin": (7, 15),
    "tcc": (16, 20),
    "test": (28, 28),
    "name": (30, 69),
    "payees": (296, 303),
    "vendor": (518, 518),
}
T |= {"address": (190, 229), "city": (230, 269), "state": (270, 271), "zip": (272, 280), "phone": (344, 358)}
A = COMMON | {"tin": (12, 20), "type": (26, 27), "codes": (28, 45), "name": (53, 92), "agent": (133, 133)}
B = COMMON | {"corrected": (6, 6), "control": (7, 10), "tin_type": (11, 11), "tin": (12, 20), "account": (21, 40)}
B |= {"amount2": (67, 78), "amount3": (79, 90), "amount4": (91, 102), "foreign": (287, 287), "name": (288, 327)}
B |= {"street": (368, 407), "city": (448, 487), "state": (488, 489), "zip": (490, 498), "abroad": (448, 498)}
SALE = B | {"noncovered": (545, 545), "gain": (546, 546), "proceeds": (547, 547), "sold": (548, 555)}
SALE |= {"cusip": (556, 568), "text": (569, 607), "acquired": (608, 615), "form8949": (617, 617)}
C = {"payees": (2, 9), "total2": (34, 51), "total3": (52, 69), "total4": (70, 87), "total9": (160, 177)}
F = {"payers": (2, 9), "zeros": (10, 30), "payees": (50, 57)}


def read(record, layout):
    return {name: record[first - 1 : last].rstrip() for name, (first, last) in layout.items()}


def recipient(name, tin="", tin_type=TinType.UNKNOWN, address=HOME):
    return Recipient(
        customer_id=UUID(int=9),
        name=name,
        is_individual=tin_type == TinType.SSN,
        address=address,
        tin=tin,
        tin_type=tin_type,
        filing=Filing.FILED,
    )


def disposal_line(cost, proceeds, *, redeemed=False, acquired=date(2025, 6, 2), trade=7):
    matures = date(2025, 6, 24)
    disposed = matures if redeemed else date(2025, 6, 13)
    return tax_line(
        Disposal(UUID(int=1), UUID(int=trade), "912797PT8", acquired, disposed, matures, redeemed, 100, proceeds, cost)
    )


YEAR = TaxYear(
    UUID("00000000-0000-4000-8000-0000000000ab"),
    2025,
    [
        disposal_line(9_975_40, 10_000_00, redeemed=True),
        disposal_line(9_975_40, 9_989_00),
        disposal_line(9_975_40, 9_970_00, acquired=date(2025, 6, 3)),
    ],
    withheld=8_86,
)
ANNA = recipient("Anna Müller-Łódź", "078051120", TinType.SSN)
SHOP = recipient("The Ørsted & Co, S.à r.l.", "123456780", TinType.EIN, PARIS)


def records_of_file(*, line_ends=False):
    out = io.BytesIO()
    file = IrsFile(out, PAYER, 2025, line_ends=line_ends)
    for form in TaxForm:
        file.add(form, ANNA, YEAR)
        file.add(form, SHOP, YEAR, corrected=True)
    file.end(test=True, prior_year=False)
    content = out.getvalue().decode("ascii")
    return [content[at : at + 750] for at in range(0, len(content), 750)]


def test_irs_records_have_750_positions_in_order_and_are_numbered():
    records = records_of_file()
    assert "".join(each[0] for each in records) == "TABBCABBBBCF"
    assert all(len(each) == 750 and each.isprintable() for each in records)
    assert [each[499:507] for each in records] == [f"{n:08}" for n in range(1, 13)]
    assert all(
        each[748:] == "\r\n" and each[:748] == plain[:748]
        for each, plain in zip(records_of_file(line_ends=True), records, strict=True)
    )


def test_the_irs_file_names_the_bank_as_transmitter_and_payer():
    records = records_of_file()
    assert read(records[0], T) == {
        "year": "2025",
        "sequence": "00000001",
        "tin": "123456789",
        "tcc": "1AB23",
        "test": "T",
        "name": "BILLFOLD SANDBOX BANK",
        "payees": "00000006",
        "vendor": "I",
        "address": "1 LEDGER WAY",
        "city": "WILMINGTON",
        "state": "DE",
        "zip": "19801",
        "phone": "3025550142",
    }
    payers = [read(each, A) for each in records if each[0] == "A"]
    assert [(each["type"], each["codes"]) for each in payers] == [("6", "34"), ("B", "234")]
    assert all((each["tin"], each["agent"]) == ("123456789", "0") for each in payers)


def test_a_1099_int_record_of_interest_is_written():
    anna, shop = (read(each, B) for each in records_of_file()[2:4])
    assert (anna["control"], anna["tin_type"], anna["tin"]) == ("MULL", "2", "078051120")
    assert (anna["name"], anna["street"], anna["city"]) == ("ANNA MULLER-LODZ", "1 MAIN STREET", "NEW YORK")
    assert (anna["state"], anna["zip"], anna["account"]) == ("NY", "100012345", "400080000000000000AB")
    # 24.60 at maturity and 12.30 of the first sale; the second was a loss.
    assert (anna["amount3"], anna["amount4"], anna["amount2"]) == ("000000003690", "000000000886", "000000000000")
    assert (shop["control"], shop["tin_type"], shop["corrected"], shop["foreign"]) == ("ORST", "1", "G", "1")
    assert (shop["name"], shop["abroad"]) == ("THE ORSTED & CO, S.A R.L.", "PARIS 75017 FR")


def test_a_1099_b_record_of_a_sale_is_written():
    gain, loss = (read(each, SALE) for each in records_of_file()[6:8])
    assert (gain["amount2"], gain["amount3"]) == ("000000998900", "000000998770")
    assert (loss["amount2"], loss["amount3"]) == ("000000997000", "000000997540")
    assert (gain["sold"], gain["acquired"], gain["cusip"].strip()) == ("20250613", "20250602", "912797PT8")
    assert gain["text"] == "100 US TREASURY BILLS DUE 06/24/2025"
    assert [gain[name] for name in ("noncovered", "gain", "proceeds", "form8949")] == ["2", "1", "1", "A"]
    assert gain["account"] != loss["account"], "each return of a payee is told from the others"


def test_the_irs_file_totals_equal_the_sum_of_the_preceding_returns():
    records = records_of_file()
    sums: dict[str, int] = {}
    for each in records:
        if each[0] == "A":
            sums = dict.fromkeys(("amount2", "amount3", "amount4", "count"), 0)
        if each[0] == "B":
            found = read(each, B)
            sums = {name: sums[name] + int(found.get(name, 1)) for name in sums}
        if each[0] == "C":
            total = {name: int(value) for name, value in read(each, C).items()}
            assert [total[f"total{n}"] for n in (2, 3, 4)] == [sums[f"amount{n}"] for n in (2, 3, 4)]
            assert (total["payees"], total["total9"]) == (sums["count"], 0)
    assert read(records[-1], F) == {"payers": "00000002", "zeros": "0" * 21, "payees": "00000006"}


@pytest.mark.parametrize("address", ["1 Ledger Way", "1 Ledger Way, Wilmington, Delaware", ""])
def test_a_bank_without_an_address_in_the_united_states_cannot_file(address):
    with pytest.raises(ValueError, match="an address reads like"):
        IrsFile(io.BytesIO(), PAYER._replace(address=address), 2025)


def test_a_sale_too_large_for_an_irs_record_is_refused_before_writing_its_pocket():
    big = tax_line(disposal_of(10**13))
    year = TaxYear(UUID(int=1), 2025, [big], 0)
    with pytest.raises(ValueError, match="does not fit"):
        require_records(TaxForm.BROKER, recipient("Anna"), year)


def disposal_of(cents):
    day = date(2025, 6, 2)
    return Disposal(
        pocket_id=UUID(int=1),
        trade_id=UUID(int=2),
        cusip="912797PT8",
        acquired_on=day,
        disposed_on=date(2025, 6, 13),
        maturity=date(2025, 6, 24),
        redeemed=False,
        units=1,
        proceeds=cents,
        cost=cents,
    )
