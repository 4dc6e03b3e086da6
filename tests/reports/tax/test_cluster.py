"""Tax forms and statements of a bank on a Citus cluster are, byte for byte, those of one server."""

import io
import os
import random
import re
from collections import Counter
from datetime import UTC, date, datetime
from uuid import UUID

import asyncpg
import pytest
from msgspec.structs import replace
from tests.reports.tax.test_year_end import sell_around_midnight
from tests.support.apps import lend_partner_app, take_back
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import PartnerApi, new_partner

from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.database import embedded
from billfold.platform.database.connection import ensure_login
from billfold.platform.database.pool import APP_ROLE
from billfold.reports.proofs import signed_files
from billfold.reports.proofs.signatures import SignedManifest, payload_of
from billfold.reports.statements.worker import StatementMaker
from billfold.reports.tax.rules import TaxStatus
from billfold.reports.tax.store import set_tax_status
from billfold.reports.tax.worker import TaxFormMaker, correct_forms, write_irs_file

pytestmark = pytest.mark.skipif("BILLFOLD_TEST_CITUS_URL" not in os.environ, reason="without a Citus cluster")

LINK = re.compile(rb"expires=\d+&signature=[\w-]+")
"""Differs by the wall clock."""
MADE = {"1099-INT": 4, "1099-B": 4, "BANK": 8, "BROKERAGE": 8, "list": 4, "IRS": 2}
"""Of four customers with two Pockets each; the forms of one are corrected."""


@pytest.fixture
async def one_server(tmp_path):
    """The address of a migrated database of one server."""
    server = embedded.start(tmp_path / "server", settings=embedded.THROWAWAY_SETTINGS)
    await ensure_login(server.dsn, APP_ROLE)
    conn = await asyncpg.connect(server.dsn)
    await runner.up(conn)
    await conn.close()
    yield server.dsn
    embedded.stop(server)


async def made(dsn):
    """Return what is made of a year in which customers sold bills, by its type and id or path."""
    bank = await open_bank(dsn, clock_start=datetime(2025, 12, 1, 14, tzinfo=UTC))
    app = lend_partner_app(bank)
    desk = PartnerApi(bank, app, await new_partner(bank))
    pockets = [await desk.funded(cents) for cents in (100_000_00, 200_000_00, 300_000_00)]
    for pocket in pockets:
        await desk.transfer(pocket, await desk.pocket(pocket.customer, weeks=13), 12_345_67)
    pockets.append(await sell_around_midnight(desk))
    await set_tax_status(bank, TaxStatus(pockets[0].key[0], exempt=True))
    await set_tax_status(bank, TaxStatus(pockets[1].key[0], None, date(2025, 1, 1)))
    await TaxFormMaker()(bank)
    await StatementMaker()(bank)
    found = {("IRS", "all"): await irs_file(bank)}
    await correct_forms(bank, pockets[-1].key[0], 2025, "Your address was wrong.")
    found["IRS", "corrected"] = await irs_file(bank, corrected_since=await bank.now())
    for pocket in pockets:
        path = f"/api/v1/customers/{pocket.customer}/statements/"
        answer = await desk.ask("GET", path, status=200)
        found["list", path] = LINK.sub(b"", answer.content)
        for each in answer.json()["items"]:
            pdf = await desk.client.http.get(each["pdf_download_url"])
            found[each["type"], each["id"]] = without_chain(pdf.content)
    await desk.close()
    await take_back(app)
    await close_bank(bank)
    return found


def without_chain(pdf):
    """Return a document without its proof, and what is proved without the hash of the log.

    Two lives on one server differ in that hash, too, and in the key that signs.
    """
    read = signed_files.read(pdf)
    assert read.proof is not None
    manifest = payload_of(read.proof, SignedManifest).manifest
    assert len(manifest.position.chain) == 64
    return read.content, replace(manifest, position=replace(manifest.position, chain=""))


async def irs_file(bank, **options):
    out = io.BytesIO()
    await write_irs_file(bank, 2025, out, **options)
    return out.getvalue()


async def test_tax_forms_and_statements_of_a_cluster_are_those_of_one_server(database_dsn, one_server, monkeypatch):
    lives = []
    for dsn in (one_server, database_dsn):
        drawn = random.Random(2025)
        monkeypatch.setattr(ids, "uuid4", lambda drawn=drawn: UUID(int=drawn.getrandbits(128), version=4))
        lives.append(await made(dsn))
    here, there = lives
    assert here.keys() == there.keys()
    assert [name for name, content in here.items() if content != there[name]] == []
    assert Counter(kind for kind, _ in here) == MADE
    # Besides the returns there are one T and one F record, and one A and one C record of each form.
    returns = [len(content) // 750 - 6 for (kind, _), content in here.items() if kind == "IRS"]
    assert returns == [7, 3], "the exempt customer has none, and each sale is a return"
