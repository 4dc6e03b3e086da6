"""Postal addresses of customers."""

from typing import Annotated

import msgspec

from billfold.ledger.customers import CustomerRow
from billfold.platform.countries import COUNTRIES, US_STATES

Line = Annotated[str, msgspec.Meta(min_length=1, max_length=250)]


Country = Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}\Z", description="a country as two letters, like US")]


class Address(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A postal address; the country as two letters."""

    street_address: Line
    street_address2: Annotated[str, msgspec.Meta(max_length=250)] | None = None
    city: Line
    postal_code: Annotated[str, msgspec.Meta(min_length=1, max_length=50)]
    state: Annotated[str, msgspec.Meta(max_length=50)] | None = None
    country: Country


class _Located(msgspec.Struct):
    address: Address | None = None


def format_address(address: Address) -> str:
    """Return an address as one line: "1 Main Street, New York, NY 10001, US"."""
    city_line = f"{address.state} {address.postal_code}" if address.state else address.postal_code
    lines = (address.street_address, address.street_address2, address.city, city_line, address.country)
    return ", ".join(line for line in lines if line)


def address_of(row: CustomerRow) -> Address | None:
    """Return where a customer is, as far as is known. Its profile is opened."""
    return msgspec.json.decode(row.profile, type=_Located).address


def find_address_error(address: Address) -> tuple[str, str] | None:
    """Return the field whose country, or whose state in the US, does not exist, and what it must be."""
    if address.country not in COUNTRIES:
        return "country", "must be a country's two letters of ISO 3166, like US"
    if address.country == "US" and address.state is not None and address.state not in US_STATES:
        return "state", "must be a state's two letters, like NY"
    return None
