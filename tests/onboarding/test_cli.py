"""`billfold review`: pending reviews are listed, shown and decided."""

import os
from uuid import UUID

import pytest
from tests.fixtures.cli import SEED
from tests.support.whole_bank import PARTNER

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.pockets.commands import OpenPocket
from billfold.cli.context import run_with_bank
from billfold.documents import store
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.documents.store import keep_sealed
from billfold.platform import ids
from billfold.platform.file_kinds import FileKind
from billfold.wiring.cli_context import Wiring

CUSTOMER, DOCUMENT = ids.new(), ids.new()


@pytest.fixture
def counterparty_in_review(founded, database_dsn, tmp_path):
    """Return the id of a counterparty in review, with a document."""

    async def prepare(bank):
        async def do(kind, **fields):
            command = kind(caller="test", key=ids.new(), customers=(CUSTOMER,), **fields)
            return (await bank.engine.submit(command)).outcome

        await do(EnrolCustomer, partner_id=PARTNER, role="customer", type="BUSINESS", name="N", profile=None)
        await do(OpenPocket, partner_id=PARTNER, name="P", deposit_weeks=4, reinvestment_weeks=4)
        file = await keep_sealed(bank, CUSTOMER, DOCUMENT, b"%PDF-a statement")
        async with bank.pool.acquire() as conn, conn.transaction():
            now = await bank.now(conn)
            await store.request_document(conn, CUSTOMER, DOCUMENT, type_=PROOF_OF_ACCOUNT, at=now)
            row = await store.get_document(conn, DOCUMENT)
            await store.put_file(conn, row, file, kind=FileKind.PDF, name="s.pdf", invalid=None, at=now)
        added = await do(
            AddCounterparty,
            type="wire",
            details={"routing_number": "1", "identifier": "2"},
            counterparty_name={"type": "business", "business_name": "Contoso"},
            verification="supporting_documents",
            document_ids=(DOCUMENT,),
        )
        return UUID(added["counterparty_id"])

    environment = {
        "BILLFOLD_DATABASE_URL": database_dsn,
        "BILLFOLD_STATE_DIR": str(tmp_path),
        "BILLFOLD_SEED": SEED,
        "PATH": os.environ["PATH"],
    }
    return run_with_bank(Wiring(environment), prepare)


def test_pending_reviews_are_listed_downloaded_and_decided_once(founded, counterparty_in_review, tmp_path):
    def review(*words):
        return founded("review", *words)

    status, said = review("list")
    assert status == 0
    assert "Contoso (wire)" in said
    out = tmp_path / "s.pdf"
    assert review("download", str(DOCUMENT), "--out", str(out))[0] == 0
    assert out.read_bytes() == b"%PDF-a statement"
    assert review("approve", str(counterparty_in_review)) == (0, "✓ The counterparty is verified.")
    assert review("list") == (0, "Nothing waits.")
    status, said = review("reject", str(counterparty_in_review), "--reason", "x")
    assert status == 1
    assert "counterparty-not-pending" in said
    status, said = review("approve", str(ids.new()))
    assert status == 1
    assert "See the list." in said
    assert review("list", "--kind", "cats")[0] == 1
