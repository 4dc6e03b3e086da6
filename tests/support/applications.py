"""Applications as partners and customers complete them, their consents, and screened names."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from tests.documents.test_inspection import a_pdf, a_picture

from billfold import sandbox
from billfold.ledger.scheduler import bank_customer_id, run_scheduled_jobs
from billfold.ledger.types import Origin
from billfold.onboarding.agreements import store
from billfold.onboarding.agreements.publishing import Publisher, Release, publish
from billfold.onboarding.agreements.texts import AgreementTexts, shipped_texts
from billfold.onboarding.rescreening import screen_backlog
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date
from billfold.screening import cli
from billfold.screening.types import HitStatus

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
    """Run due work, as the worker does, until there is none left; no job may fail."""
    happened = True
    while happened:
        done = await run_scheduled_jobs(bank, await bank.now())
        assert not done.failed, done.failed
        happened = done.happened.total() > 0


FIRST, SECOND = "2025-06-01", "2025-07-01"


def changed(**fields):
    """Return texts of which the terms of use say something else."""
    documents = [
        msgspec.structs.replace(each, **fields) if each.type == "TERMS_OF_USE" else each
        for each in shipped_texts().documents
    ]
    return AgreementTexts(documents=tuple(documents))


async def release(bank, day=SECOND, *, required_by=None, texts=None):
    """Publish a version, as the operator's command does."""
    by = Publisher(bank_customer_id(bank.seed), "The Bank", bank.vault, Origin.operator())
    made = Release(
        texts or changed(paragraphs=("New.",)),
        date.fromisoformat(day),
        required_by=date.fromisoformat(required_by) if required_by else None,
    )
    async with bank.pool.acquire() as conn:
        await publish(conn, by, made, today=et_date(await bank.now()), now=wall_now())
    await store.refresh(bank.pool, bank.terms.agreements)


LIST = (Path(sandbox.__file__).parent / "scenarios" / "sanctions.xml").read_text()
NOTE = "Born in another country."


async def act(bank, operator, command, *arguments, **options):
    """Call a command in an operator's name."""
    bank.settings = replace(bank.settings, operator=operator)
    return await command(bank, *arguments, **options)


async def only_hit(bank, status=HitStatus.OPEN):
    """Return the one hit of a status, as it is listed."""
    (hit,) = await cli.hits(bank, status=status)
    return hit


async def clear(bank, hit_id):
    """Let two operators clear a hit, and run the worker."""
    for operator in ("anna", "ben"):
        await act(bank, operator, cli.clear, hit_id, note=NOTE)
    await run_jobs(bank)


async def import_list(bank, folder, content):
    """Import a list as the command does, and screen everybody."""
    (folder / "SDN.XML").write_text(content)
    async with bank.pool.acquire() as conn, conn.transaction():
        await cli.import_list(conn, folder / "SDN.XML")
    while await screen_backlog(bank):
        pass
    await run_jobs(bank)


def listing(name, day):
    """Return the list of a day of February 2025, in which an entity of this name is an entry."""
    return LIST.replace("BRACHMOND INDUSTRIAL GROUP", name).replace("01/02/2025", f"02/{day:02}/2025")
