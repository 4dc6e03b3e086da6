"""`bad-week`: returns, a correction, a rate shock, a market holiday, a recall and a file that comes late."""

from billfold.sandbox.scenarios.player import V1, Player
from billfold.sandbox.scenarios.types import Scenario, Step

SHOCK_BASIS_POINTS = 75
_POCKET = "Operating reserve"
_LANDLORD, _SUPPLIER, _BUYER, _LAWYERS = "Larkmoor Estates", "Vantorp Supplies", "Harbor Buyers", "Stone and Partners"


def _begin(player: Player) -> str:
    when = player.next_week()
    player.open_customer()
    player.open_pocket(_POCKET, "UST-13W")
    player.receive_wire(_POCKET, 500_000_00, "Northwind Trading LLC")
    for nth, name in enumerate((_LANDLORD, _SUPPLIER, _BUYER), start=1):
        player.add_counterparty(name, "ach", f"00012345670{nth}")
    player.add_counterparty(_LAWYERS, "wire", "5647772655")
    return f"{player.customer_name} has $500,000.00 in bills. It is {when}"


def _pay(player: Player) -> str:
    player.ids["rent"] = player.originate(_POCKET, _LANDLORD, 18_400_00, purpose="RENT")
    player.ids["supplies"] = player.originate(_POCKET, _SUPPLIER, 7_250_03, purpose="SUPPLIES")
    player.ids["invoice"] = player.originate(_POCKET, _SUPPLIER, 3_100_00, purpose="INVOICE")
    player.ids["sale"] = player.originate(_POCKET, _BUYER, 12_000_00, direction="DEBIT", purpose="SALE 41")
    player.submit_ach()
    return "Three credits and a debit are in the file of today."


def _close_market(player: Player) -> str:
    day = player.weekday(2)
    player.market.close_market(day, "Day of mourning")
    return f"{day} is no business day of the bond market: what would settle then settles a day later."


def _shock(player: Player) -> str:
    before = player.value(_POCKET)
    player.market.shift_rates(player.today(), SHOCK_BASIS_POINTS)
    player.go_to(player.weekday(1))
    after = player.value(_POCKET)
    return f"Rates are {SHOCK_BASIS_POINTS} basis points higher. The Pocket was worth {before} and is worth {after}."


def _holiday(player: Player) -> str:
    happened = player.go_to(player.weekday(2))
    player.ids["wire"] = player.send_wire(_POCKET, _LAWYERS, 40_000_00, "Retainer")
    player.move_ach("rent", "return", code="R03")
    return f"A wire of $40,000.00 leaves; the rent comes back (R03). On the way: {happened}."


def _returns(player: Player) -> str:
    player.go_to(player.weekday(3))
    player.move_ach("invoice", "change", code="C01", corrected="000123456799")
    statuses = {name: player.ach_status(_POCKET, name) for name in ("rent", "supplies", "invoice")}
    return ", ".join(f"{name} {status}" for name, status in statuses.items())


def _recall(player: Player) -> str:
    arrived = player.client.get(f"{V1}/wires/?direction=INCOMING").body["items"]
    customer = player.ids["customer"]
    paid = next(each for each in arrived if each["customer_id"] == customer)
    player.simulate(f"wires/{paid['id']}/request-return/", reason="DUPL")
    return "The bank of Northwind Trading LLC asks for its $500,000.00 back: they were paid twice."


def _wire_back(player: Player) -> str:
    wire = player.ids["wire"]
    player.simulate(f"wires/{wire}/return/", reason="AC04", information="Account closed")
    return f"$40,000.00 are back: the account of {_LAWYERS} is closed."


def _late_file(player: Player) -> str:
    happened = player.go_to(player.weekday(4))
    player.move_ach("sale", "return", code="R10")
    status = player.ach_status(_POCKET, "sale")
    return f"The debit of Monday is {status} (R10), four days later. On the way: {happened}."


def _weekend(player: Player) -> str:
    happened = player.go_to(player.weekday(7))
    return f"The Pocket is worth {player.value(_POCKET)}. On the way: {happened}."


BAD_WEEK = Scenario(
    "bad-week",
    "A business in a week in which everything comes back: ACH returns and a correction, a rate shock, a market"
    " holiday, a recalled and a returned wire, and a return that comes late.",
    (
        Step("A business is funded by wire", _begin),
        Step("Monday: it pays and collects by ACH", _pay),
        Step("The bond market is to be closed on Wednesday", _close_market),
        Step("Tuesday: rates jump", _shock),
        Step("Wednesday: a wire on the market holiday, and a return", _holiday),
        Step("Thursday: a payment has failed, an account is corrected", _returns),
        Step("The wire that funded the business is recalled", _recall),
        Step("The wire of Wednesday comes back", _wire_back),
        Step("Friday: a return comes late", _late_file),
        Step("Monday: the books of the week", _weekend),
    ),
)
