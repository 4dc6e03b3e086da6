"""`billfold reconcile`: a morning on the command line, with two operators."""

import re
from datetime import timedelta

from tests.payments.cli_bank import prepare
from tests.reconciliation.files import camt053, entry
from tests.support.approvals import confirmed
from tests.support.small_rails import Customer

from billfold.platform.dates import et_date, et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper

__all__ = ["prepare"]
ACCOUNT = {"BILLFOLD_RESERVE_ACCOUNT": "R-1"}
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_a_statement_is_imported_and_its_break_closed_on_the_command_line(billfold, prepare, tmp_path):
    async def live(bank):
        await Customer(bank, "Anna").settle_in(500_00)
        day = bank.calendars.settlement_on_or_before(et_date(await bank.now()))
        await ClockStepper(bank).set_to(et_instant(day + timedelta(days=1), 9))
        return day

    day = prepare(live)

    def run(*words, **more):
        return billfold("reconcile", *(str(word) for word in words), **ACCOUNT | more)

    status, said = run()
    assert (status, "no statement" in said) == (0, True)
    file = tmp_path / "monday.xml"
    file.write_bytes(camt053(day, [entry(500_00, day), entry(-25_00, day, "FEE-7")], account="R-1"))
    status, said = run("import", file)
    assert (status, "is reconciled" in said) == (0, True), said
    status, said = run("import", file)
    assert (status, "arrived as monday.xml" in said) == (1, True), said
    status, said = run("breaks")
    break_id = ID.findall(said)[0]
    assert ("FEE-7" in run("show", break_id)[1], "UNKNOWN_LINE" in said) == (True, True)
    assert run("assign", break_id, "--owner", "Olga", "--note", "asked")[0] == 0
    confirmed(billfold, run("close", break_id, "losses", "--reason", "account fee"))
    assert "LOSSES" in run("breaks", "--closed")[1]
    assert billfold("verify")[0] == 0
