"""The customer the token is for."""

from __future__ import annotations

from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http.operations import get, with_scope
from billfold.interfaces.http.rate_groups import CUSTOMER
from billfold.interfaces.http.shapes.customer import Customer, render_customer


@get("/api/v1/customer/", with_scope("customer.read", CUSTOMER))
async def get_customer(member: Member, bank: Bank) -> Customer:
    """Read the company's details."""
    return render_customer(await member.customer(bank))
