"""Operators read every message of the files of the rails, and the bank's holdings and needs of the coming days."""

import threading

from tests.support.browser import first_match

from billfold.web.operators import rails
from billfold.web.operators.rails import read_page


async def test_operators_see_rail_file_messages_and_only_managers_retry_files(
    bank, operators, customer_desk, customer_world, monkeypatch
):
    manager, viewer = await operators(), await operators("VIEWER")
    own = await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 250_000_00)
    await viewer.go("/bank/rails?rail=WIRE&direction=IN")
    assert (await viewer.go("/bank/rails?rail=CARD&state=REFUSED")).status_code == 200
    assert "There are no such files." in viewer.text
    await viewer.go("/bank/rails")
    path = first_match(r'href="(/bank/rails/[^"?]+)"', viewer.page.text)
    threads = []

    def noted(*args):
        threads.append(threading.current_thread())
        return read_page(*args)

    monkeypatch.setattr(rails, "read_page", noted)
    await viewer.go(path)
    assert threads[0] is not threading.current_thread(), "other requests go on meanwhile"
    assert "pacs.008.001.08" in viewer.text
    assert "$250,000.00" in viewer.text
    for each, status in ((viewer, 409), (manager, 303)):
        await each.go(path)
        assert (await each.post(f"{path}/retry", {"csrf": each.csrf})).status_code == status
    retried = "SELECT outcome FROM audit_entry WHERE action = 'files.retry' ORDER BY recorded_at"
    assert [row["outcome"] for row in await bank.pool.fetch(retried)] == ["FAILURE", "SUCCESS"]


async def test_the_treasury_page_shows_settlements_maturities_and_liquidity(operators, customer_desk, customer_world):
    viewer, own = await operators("VIEWER"), await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 250_000_00)
    await viewer.go("/bank/treasury")
    assert "Buy 250,600 of 912797PT8" in viewer.text
    assert "There is no signed root yet" in viewer.text
    out = first_match(r'Liquidity by day">.*?</tr></thead><tbody>\s*(.*?)</tbody>', viewer.page.text.replace("\n", " "))
    assert "$250,000.00" in out
    assert "$249,983.84" in out
