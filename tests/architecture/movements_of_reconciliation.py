"""Movements of reconciliation: days with their breaks, and breaks that two people close."""

from datetime import date
from uuid import UUID

from billfold.platform.ids import command_id
from billfold.reconciliation.commands import AssignBreak, CloseBreak, ReconcileDay
from billfold.reconciliation.types import Cause, NewBreak, Resolution, Source, day_id

DAY, FILE = date(2025, 5, 28), UUID(int=7)


def play_reconciliation(new_stage):
    stage = new_stage(dealers=("citadel",))
    house = stage.house()

    def do(command, *references, **fields):
        stage.submit(command, house, references=references, **fields)

    def record(source, new):
        key = day_id(source, "A", DAY)
        fields = {"source": source, "account": "A", "day": DAY, "file_id": FILE, "lines": 1}
        do(ReconcileDay, key, **fields, opened=(new,))
        return command_id("break", f"{key}:{FILE}:0")

    with stage.row("Day reconciled with a statement"):
        fee = record(Source.RESERVE, NewBreak(cause=Cause.UNKNOWN_LINE, subject="line 1", stated=-25_00))
    short = record(Source.CUSTODIAN, NewBreak(cause=Cause.DIFFERENT_UNITS, subject="912797PT8", stated=99, booked=100))
    missing = record(Source.DEALER, NewBreak(cause=Cause.NO_STATEMENT, subject="statement"))
    with stage.row("Break assigned"):
        do(AssignBreak, fee, break_id=fee, owner="Olga", note=None)
    for title, break_id, resolution, difference in (
        ("Break explained", missing, Resolution.EXPLAINED, 0),
        ("Break posted to the losses", fee, Resolution.LOSSES, -25_00),
        ("Break posted to the inventory", short, Resolution.INVENTORY, -1),
    ):
        with stage.row(title):
            do(CloseBreak, break_id, break_id=break_id, resolution=resolution, reason="x", difference=difference)
