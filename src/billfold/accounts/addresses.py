"""Postal addresses of customers."""

from typing import Annotated

import msgspec

from billfold.ledger.customers import CustomerRow

_COUNTRIES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT
BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH
ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT
HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS
LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI
NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG
SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG
UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
_US_STATES = """
AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC
ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC AS FM GU MH MP PR PW VI AA AE AP
"""
COUNTRIES = frozenset(_COUNTRIES.split())
US_STATES = frozenset(_US_STATES.split())
"""The states, the District of Columbia, the territories, and the armed forces abroad."""


Line = Annotated[str, msgspec.Meta(min_length=1, max_length=250)]


Country = Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}\Z", description="a country as two letters, like US")]


class Address(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A postal address; the country is a two-letter code."""

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
    """Return the address of a customer, if known. Its profile must be decrypted."""
    return msgspec.json.decode(row.profile, type=_Located).address


def find_address_error(address: Address) -> tuple[str, str] | None:
    """Return the field whose country, or whose US state, does not exist, and what it must be."""
    if address.country not in COUNTRIES:
        return "country", "must be a country's two letters of ISO 3166, like US"
    if address.country == "US" and address.state is not None and address.state not in US_STATES:
        return "state", "must be a state's two letters, like NY"
    return None
