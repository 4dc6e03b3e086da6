"""The customer the token is for."""

from __future__ import annotations

from billfold.accounts.customers.schemas import Customer, render_customer
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import CUSTOMER
from billfold.http.operations import get, with_scope
from billfold.ledger.bank import Bank


@get("/api/v1/customer/", with_scope("customer.read", CUSTOMER))
async def get_customer(member: CustomerCaller, bank: Bank) -> Customer:
    """Read the company's details."""
    return render_customer(await member.customer(bank))
