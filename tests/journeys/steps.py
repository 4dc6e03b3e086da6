"""Steps of stories in a browser."""

import re

SUPPLIER = {
    "Company": "Fabrikam",
    "Routing_number": "021000021",
    "Account_number": "000123456789",
    "Street_and_number": "1 Main Street",
    "City": "New York",
    "State": "NY",
    "Postal_code": "10001",
}
APPROVAL_RULE = {
    "name": "Large wires",
    "approver_roles": ["ADMIN"],
    "min_amount_usdc": 1_000_000_000,
    "required_approvals": 1,
    "transfer_types": ["WIRE"],
}
POLICY: dict[str, dict[str, list[str]]] = {"document": {"rules": [], "tests": []}}


async def approve_change(visitor, path):
    """Approve a change of what the team may do."""
    await visitor.go(path, "change to approve")
    await visitor.fill(Code_from_your_authenticator_app=visitor.app.code())
    await visitor.press("Approve", "approvals")


async def receive_money(visitor, place):
    """Let a wire of $25,000,000.00 arrive at the first Pocket of the story."""
    await visitor.go(place.pocket, "pocket")
    await visitor.follow("Instructions", "paying in")
    await visitor.follow("Let a wire arrive", "simulation")
    await visitor.fill(Amount="25,000,000", Sender_name="Contoso")
    await visitor.press("Run simulation", "simulated")


async def see_value_grow(visitor, place):
    """Let the clock run, see the total value change on an open page, and stop the clock."""
    await visitor.go("/sandbox", "control room")
    await visitor.press("Start clock", "control room")
    await visitor.go(place.home, "home")
    value = visitor.page.locator("[data-ticks]").first
    grown = "before => document.querySelector('[data-ticks]').innerText !== before"
    await visitor.page.wait_for_function(grown, arg=await value.inner_text())
    await visitor.go("/sandbox", "control room")
    await visitor.press("Stop clock", "control room")


async def ask_where_the_wire_is(visitor):
    """Find the wire of the opening story from the first page of an operator, as the customer waits on the telephone."""
    await visitor.go("/bank", "health")
    await visitor.fill(Find_a_customer_or_a_payment="250,000.00")
    await visitor.press("Search", "wire or found wires")
    if visitor.path == "/bank/search":
        await visitor.follow(re.compile("Northwind Trading"), "wire")
    assert "The money is in the Pocket." in await visitor.text()
    await visitor.follow("Dummy Customer Inc.", "customer of an operator")
    assert "Ada Marsh" in await visitor.text()


async def find_by_key(page, key, text, name):
    """Press a key or the button, type, and open the only option of this name."""
    await (page.keyboard.press(key) if key else page.locator("[data-find]").click())
    await page.locator(".palette input").fill(text)
    option = page.get_by_role("option", name=name).first
    await option.wait_for()
    async with page.expect_navigation():
        await option.click()


async def find_payee(visitor, name):
    """Find the payee that a form already pays by typing the begin of its name, and choose it again."""
    payee = visitor.page.get_by_role("combobox", name="To", exact=True)
    assert await payee.input_value() == name
    await payee.fill(name[:4].lower())
    await visitor.page.get_by_role("option", name=name).first.wait_for()
    await payee.press("Enter")
    assert "Domestic wire: arrives" in await visitor.text()


async def add_supplier(visitor, place):
    """Add an account to pay to, and verify it as the bank's reviewer; its page is open then."""
    await visitor.go(f"{place.home}/counterparties", "counterparties")
    await visitor.follow("Add a counterparty", "new counterparty")
    await visitor.fill(**SUPPLIER)
    await visitor.press("Add counterparty", "counterparty")
    supplier = visitor.path
    await visitor.follow("Let the bank approve it", "simulation")
    await visitor.press("Run simulation", "simulated")
    await visitor.go(supplier, "counterparty")
