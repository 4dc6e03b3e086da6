"""The audit log is filtered by query parameters and shows a company only its own entries."""

import re

from tests.support.browser import first_match


async def test_the_audit_log_is_filtered_and_downloaded(console, customer_desk, other_customer):
    browser = await console(customer_desk)
    await customer_desk.pocket(name="Reserve")
    path, csv = f"{browser.home}/audit-log", f"{browser.home}/audit-log.csv"
    await browser.go(path)
    assert "Anna Lind created the Pocket Reserve" in browser.text
    assert "Time (Eastern)" in browser.text
    assert re.search(r"\d+:\d\d [AP]M ET", browser.text)
    own = first_match(r'<option value="([^"]{36})"', browser.page.text)
    lines = (await browser.http.get(f"{csv}?member={own}")).text.splitlines()
    await browser.go(f"{path}?member={own}&from=2020-01-01")
    assert browser.page.text.count("<tr>") == len(lines)
    await browser.go(f"{path}?to=2020-01-01")
    assert "No entry matches." in browser.text
    for query, field in (("from=soon", "from"), ("to=99999", "to")):
        await browser.go(f"{path}?{query}")
        assert (browser.page.status_code, list(browser.mistakes)) == (422, [field])
    stranger = await console(other_customer)
    for tried in (f"{stranger.home}/audit-log?member={own}", f"{stranger.home}/audit-log.csv?member={own}", path, csv):
        assert (await stranger.http.get(tried)).status_code == 404, tried
    assert (await browser.go(f"{path}?member=x")).status_code == 404
    assert (await browser.go(f"{path}?cursor=x")).status_code == 422
