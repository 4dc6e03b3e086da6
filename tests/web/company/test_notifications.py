"""Notifications are read by the member whom they are for; audiences are chosen by administrators."""

from tests.support.browser import first_match, forms_of

from billfold.events.notifications.kinds import NOTIFICATION_TYPES
from billfold.web.company.notifications import SUBJECTS


def test_every_type_of_notification_has_one_subject():
    assert sorted(each for types in SUBJECTS.values() for each in types) == sorted(NOTIFICATION_TYPES)


async def test_a_notification_is_marked_as_read(console, customer_desk, customer_world):
    browser = await console(customer_desk)
    own = await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 250_000_00)
    await browser.go(f"{browser.home}/notifications?status=UNREAD")
    assert "Mark read" in browser.text
    action = next(each for each in forms_of(browser.page.text) if "/notifications/" in each)
    assert (await browser.post(action, {"status": "READ"})).status_code == 403
    await browser.send(action, status="LOST")
    assert browser.page.status_code == 422
    await browser.go(f"{browser.home}/notifications")
    await browser.send(action, status="READ")
    await browser.follow()
    assert "Mark unread" in browser.text
    await customer_world.wire(own, 10_00)
    await browser.go(f"{browser.home}/notifications")
    await browser.go(f"{browser.home}/notifications")
    assert 'aria-label="Notifications, 1 unread"' in browser.page.text
    assert "A wire of $10.00 from " in browser.text
    payment = first_match(r'href="(/[^"]*/transactions/[^"]+)">A wire of \$10.00', browser.page.text)
    assert "Wire received" in (await browser.go(payment)).text
    await browser.go(f"{browser.home}/notifications?about=Approvals")
    assert "No notification matches." in browser.text
    await browser.go(f"{browser.home}/notifications?about=Payments")
    await browser.send(f"{browser.home}/notifications/read")
    await browser.follow()
    assert 'aria-label="Notifications"' in browser.page.text
    colleague = await console(customer_desk, role="VIEWER")
    await colleague.go(colleague.home)
    assert (await colleague.post(action, {"csrf": colleague.csrf, "status": "READ"})).status_code == 404
    for wrong in ("?status=NONE", "?cursor=x", "?about=Love"):
        assert (await browser.go(f"{browser.home}/notifications{wrong}")).status_code == 422


async def test_a_notification_audience_is_set_and_cleared_in_the_console(console, customer_desk, other_customer):
    browser, viewer = await console(customer_desk), await console(customer_desk, role="VIEWER")
    path = f"{browser.home}/notifications/audiences/FUNDS_RECEIVED"
    await browser.go(path)
    form = forms_of(browser.page.text)[path]
    assert {"role.ADMIN", "role.MANAGER"} <= form.keys()
    await browser.send(path, **{"role.MANAGER": None, "role.ADMIN": None, "change": "chosen"})
    await browser.follow()
    assert "Nobody" in browser.text
    await viewer.go(f"{browser.home}/notifications/audiences")
    assert "Nobody" in viewer.text
    assert "audiences/FUNDS_RECEIVED" not in viewer.page.text
    assert (await viewer.post(path, {"csrf": viewer.csrf, "role.VIEWER": "yes"})).status_code == 403
    stranger = other_customer.team.user_id
    for wrong in ({"role.KING": "yes"}, {f"user.{stranger}": "yes"}, {"user.x": "yes"}):
        await browser.go(path)
        await browser.send(path, **wrong)
        assert browser.page.status_code == 422, wrong
    await browser.go(path)
    await browser.send(path, change="default")
    await browser.follow()
    assert "Nobody" not in browser.text
    for name, status in (("SECURITY_ALERT", 200), ("NOTHING", 404)):
        assert (await browser.go(f"{browser.home}/notifications/audiences/{name}")).status_code == status
