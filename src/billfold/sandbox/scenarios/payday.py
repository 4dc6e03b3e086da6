"""`payday`: an employer is paid by its customers, pays its staff, and one of them has moved to another bank."""

from datetime import time

from billfold.sandbox.scenarios.player import Player
from billfold.sandbox.scenarios.types import Scenario, Step

_POCKET = "Payroll"
_STAFF = (("Ada Mora", 3_214_55), ("Bo Lindqvist", 2_980_10), ("Cleo Park", 4_102_00), ("Dov Ames", 1_875_25))


def _begin(player: Player) -> str:
    when = player.next_week()
    player.open_customer()
    player.open_pocket(_POCKET, "UST-4W")
    for nth, (name, _) in enumerate(_STAFF, start=1):
        player.add_counterparty(name, "ach", f"00098765430{nth}")
    return f"{player.customer_name} has a Pocket and four accounts to pay to. It is {when}"


def _collect(player: Player) -> str:
    for cents in (9_500_00, 8_200_00, 4_999_99):
        player.receive_ach(_POCKET, cents, "Contoso")
    player.receive_wire(_POCKET, 30_000_00, "Northwind Trading LLC")
    return "Three ACH credits are held for two days; a wire is available at once."


def _pay(player: Player) -> str:
    player.go_to(player.weekday(2))
    for name, cents in _STAFF:
        player.ids[f"wage of {name}"] = player.originate(_POCKET, name, cents, purpose="PAYROLL")
    player.submit_ach()
    return f"{len(_STAFF)} wages are in the file of Wednesday."


def _settle(player: Player) -> str:
    happened = player.go_to(player.weekday(3), time(17, 30))
    return f"On the way: {happened}."


def _changes(player: Player) -> str:
    player.move_ach("wage of Ada Mora", "change", code="C01", corrected="000987654399")
    player.move_ach("wage of Dov Ames", "return", code="R02")
    return ", ".join(f"{name}: {player.ach_status(_POCKET, f'wage of {name}')}" for name, _ in _STAFF)


def _again(player: Player) -> str:
    player.go_to(player.weekday(4))
    player.ids["second wage"] = player.originate(_POCKET, "Ada Mora", 250_00, purpose="BONUS")
    player.submit_ach()
    happened = player.go_to(player.weekday(7))
    status = player.ach_status(_POCKET, "second wage")
    return f"The bonus went to the corrected account and is {status}. On the way: {happened}."


PAYDAY = Scenario(
    "payday",
    "An employer collects, pays its staff by ACH, is told of a changed account (C01) and of a closed one (R02), and"
    " pays a bonus to the corrected account.",
    (
        Step("An employer opens a Pocket", _begin),
        Step("Monday: its customers pay", _collect),
        Step("Wednesday: wages go out", _pay),
        Step("Thursday: they settle", _settle),
        Step("One account has changed, one is closed", _changes),
        Step("Friday: a bonus", _again),
    ),
)
