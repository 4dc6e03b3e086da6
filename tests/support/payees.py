"""Valid bodies of counterparties, one of each kind."""

CONTOSO = {"type": "business", "business_name": "Contoso"}
NORTHWIND = {"type": "business", "business_name": "Northwind"}
ADA = {"type": "individual", "first_name": "Ada", "last_name": "Stone"}
HOME = {"street_address": "1 Main Street", "city": "New York", "state": "NY", "postal_code": "10001", "country": "US"}
BY_WIRE = {"type": "incoming_wire"}


def wire(**fields):
    return {
        "type": "wire",
        "counterparty_name": CONTOSO,
        "routing_number": "021000021",
        "identifier": "000123456789",
        "address": HOME,
        "verification": BY_WIRE,
        **fields,
    }


def ach(**fields):
    return {
        "type": "ach",
        "counterparty_name": ADA,
        "routing_number": "021000021",
        "account_number": "000123456789",
        "account_type": "CHECKING",
        "verification": BY_WIRE,
        **fields,
    }


def abroad(**fields):
    return {
        "type": "international_wire",
        "counterparty_name": CONTOSO,
        "routing_number": "COBADEFFXXX",
        "identifier": "DE89 3704 0044 0532 0130 00",
        "identifier_code": "SWIFT_BIC",
        "verification": BY_WIRE,
        "address": HOME | {"country": "DE", "city": "Berlin", "state": None},
        **fields,
    }


def wallet(**fields):
    return {
        "type": "crypto_wallet_address",
        "counterparty_name": CONTOSO,
        "chain": "BASE",
        "wallet_address": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        **fields,
    }
