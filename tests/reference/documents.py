"""The operations as the OpenAPI documents of both APIs describe them."""

from billfold.apis.customer_api import customer_document
from billfold.apis.partner_api import partner_document, partner_operations
from billfold.platform.settings.settings import Settings
from billfold.sandbox.routes.operations import sandbox_operations

DOCUMENTS = {
    "partner": partner_document(Settings(), tuple(partner_operations(sandbox_operations())), include_deprecated=True),
    "customer": customer_document(Settings()),
}


def operations_of(document):
    """Return (operationId, method, path, operation) of every operation."""
    return [
        (operation["operationId"], method.upper(), path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def alternatives_of(document):
    """Return the scopes that grant each operation, or a part of it."""
    return {
        name: {scope for each in operation["security"] for scope in each.get("CodeBearer", ())}
        for name, _, _, operation in operations_of(document)
    }


def scopes_of(document):
    """Return the scope that opens all of each operation."""
    return {name: operation["security"][0]["CodeBearer"][0] for name, _, _, operation in operations_of(document)}
