"""Applications as partners and customers fill them in, and the desks at which they do."""

from typing import Any

from tests.documents.test_inspection import a_pdf, a_picture

from billfold.ledger.scheduler import run_scheduled_jobs
from billfold.onboarding.agreements.texts import shipped_texts

V1, V2, RETAIL = "/api/v1/business-applications/", "/api/v2/business-applications/", "/api/v1/applications/"
PARTIES = {V1: "related-party-applications", V2: "related-parties"}
ADDRESS = {
    "street_address": "1 Main Street",
    "city": "New York",
    "state": "NY",
    "postal_code": "10001",
    "country": "US",
}
CONSENT = {"version": shipped_texts().version, "timestamp": "2025-06-02T12:59:00Z"}
BUSINESS: dict[str, Any] = {
    "name": "Northwind Trading LLC",
    "doing_business_as": "Northwind",
    "website": "https://northwind.example",
    "entity_type": "LLC",
    "identification_number": {"identification_number": "12-3456789", "type": "EIN", "issuing_country": "US"},
    "address": ADDRESS,
    "contact": {
        "name": {"first_name": "Ada", "last_name": "Marsh"},
        "phone_number": "+12125550100",
        "email": "ada@northwind.example",
    },
    "formation_date": "2015-03-01",
    "risk_info": {
        "risk_categories": [],
        "has_current_enforcement_actions": False,
        "business_activity_location": "PRIMARILY_US",
        "source_of_funds": "INTERNAL_FUNDS",
        "account_usage": "MONEY_STORAGE",
        "annual_revenue": "BETWEEN_5M_100M",
        "monthly_transactions": "5_OR_LESS",
        "first_month_deposit": "1M_OR_LESS",
    },
    "industry": {"industry": "SOFTWARE"},
    "agreement_consent": CONSENT,
}
OWNER: dict[str, Any] = {
    "title": "Managing member",
    "name": {"first_name": "Ada", "last_name": "Marsh"},
    "email": "ada@northwind.example",
    "phone_number": "+12125550100",
    "citizenship": "US",
    "address": ADDRESS,
    "date_of_birth": "1980-02-29",
    "identification_number": {"identification_number": "123-45-6789", "identification_type": "SSN"},
    "roles": ["CONTROL_PERSON", "AUTHORIZED_REPRESENTATIVE", "BENEFICIAL_OWNER"],
    "ownership_percentage": "0.51",
}
PARTNER_OWNER: dict[str, Any] = OWNER | {
    "name": {"first_name": "Bo", "last_name": "Reyes"},
    "email": "bo@northwind.example",
    "identification_number": {
        "identification_number": "X1234567",
        "identification_type": "PASSPORT",
        "identification_number_issuing_country": "CA",
    },
    "citizenship": "CA",
    "roles": ["BENEFICIAL_OWNER"],
    "ownership_percentage": "0.49",
}
ABROAD = {"street_address": "1 High Street", "city": "London", "postal_code": "E1 6AN", "country": "GB"}
SIMPLE: dict[str, Any] = BUSINESS | {"entity_type": "SOLE_PROPRIETOR", "address": ABROAD}
MINORITY: dict[str, Any] = OWNER | {"ownership_percentage": "0.2"}
"""Of such a business with such an owner no document is required."""
PERSON: dict[str, Any] = {
    "name": {"first_name": "Grace", "last_name": "Hill"},
    "email": "grace@hill.example",
    "phone_number": "+12125550111",
    "date_of_birth": "1990-07-15",
    "address": ADDRESS,
    "identification_number": "219-09-9999",
    "identification_type": "SSN",
    "investment_profile": {
        "employment_status": "EMPLOYED",
        "occupation": "Engineer",
        "income": "BETWEEN_100K_AND_250K",
        "net_worth": "BETWEEN_200K_AND_1M",
    },
    "agreement_consent": CONSENT,
}
PAGE, PICTURE = a_pdf(), a_picture("PNG")
_PICTURES = {"ID_FRONT", "ID_BACK", "SELFIE", "PASSPORT"}


class Applicant:
    """One who applies at a desk of either API; `base` is where the applications are."""

    def __init__(self, desk, base=V1):
        self.desk, self.base = desk, base
        self.by_id = "/api/v2/documents/" if base == V2 else "/api/v1/documents/"

    def path(self, application_id, *more):
        """Return where an application, or something below it, is."""
        return "/".join([f"{self.base}{application_id}", *more]) + "/"

    def parties(self, application_id, *more):
        """Return where related parties are."""
        return self.path(application_id, PARTIES[self.base], *more)

    async def simple(self, **fields):
        """Return the id of an application that can be submitted and needs no documents."""
        return await self.filled(MINORITY, **SIMPLE | fields)

    async def filled(self, *parties, uploaded=True, **fields):
        """Return the id of an application that can be submitted, its documents sent."""
        made = await self.desk.post(self.base, BUSINESS | fields)
        for party in parties or (OWNER,):
            await self.desk.post(self.parties(made["id"]), party)
        if uploaded:
            await self.upload_all(made["id"])
        return made["id"]

    async def documents(self, application_id):
        """Return all documents of an application and its related parties."""
        found = await self.desk.get(self.path(application_id, "documents"))
        for party in await self.desk.get(self.parties(application_id)):
            found += await self.desk.get(self.parties(application_id, party["id"], "documents"))
        return found

    async def upload_all(self, application_id, name=None):
        """Send every file that is waited for."""
        for each in await self.documents(application_id):
            if each["status"] in {"PENDING_UPLOAD", "INVALID"}:
                await self.upload(each, name=name)

    async def upload(self, document, *, name=None, status=200, path=None):
        """Send a file of a document."""
        picture = document["type"] in _PICTURES
        headers = {"content-type": "image/png" if picture else "application/pdf"}
        headers["content-disposition"] = f'attachment; filename="{name or "scan"}"'
        body = PICTURE if picture else PAGE
        path = path or f"{self.by_id}{document['id']}/"
        return (await self.desk.ask("POST", path, body, headers=headers, status=status)).json()

    async def apply(self, application_id, status=200):
        """Submit it."""
        return await self.desk.post(self.path(application_id, "apply"), {}, status=status)

    async def get(self, application_id):
        """Return it as it is shown."""
        return await self.desk.get(self.path(application_id))

    async def decided(self, application_id):
        """Submit it, let the worker run, and return it."""
        await self.apply(application_id)
        await run_jobs(self.desk.bank)
        return await self.get(application_id)


async def run_jobs(bank):
    """Run what is due, as the worker does, until there is nothing more; nothing may fail."""
    happened = True
    while happened:
        done = await run_scheduled_jobs(bank, await bank.now())
        assert not done.failed, done.failed
        happened = done.happened.total() > 0
