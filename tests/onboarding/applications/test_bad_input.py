"""Every field of an application has its rule, and its place in the refusal."""

from tests.support.applications import ADDRESS, BUSINESS, CONSENT, OWNER, PERSON, RETAIL, V1, Applicant

EIN, SSN = BUSINESS["identification_number"], OWNER["identification_number"]
NUMBER = "identification_number.identification_number"
OF_BUSINESS = (
    ({"name": "A\u202eB"}, "name"),
    ({"identification_number": EIN | {"identification_number": "000000000"}}, NUMBER),
    ({"identification_number": EIN | {"type": "TIN", "identification_number": "07-1234567"}}, NUMBER),
    ({"identification_number": EIN | {"identification_number": "12-345"}}, NUMBER),
    ({"identification_number": EIN | {"type": "SSN"}}, "identification_number.type"),
    ({"identification_number": EIN | {"issuing_country": "CA"}}, "identification_number.issuing_country"),
    (
        {"identification_number": EIN, "identification_number_issuing_country": "CA"},
        "identification_number_issuing_country",
    ),
    ({"identification_number_issuing_country": "XX"}, "identification_number_issuing_country"),
    ({"address": ADDRESS | {"country": "XX"}}, "address.country"),
    ({"address": ADDRESS | {"state": "XX"}}, "address.state"),
    ({"contact": {"email": "nobody"}}, "contact.email"),
    ({"contact": {"phone_number": "+1"}}, "contact.phone_number"),
    ({"contact": {"name": {"first_name": "A\u2066", "last_name": "B"}}}, "contact.name.first_name"),
    ({"formation_date": "2025-06-03"}, "formation_date"),
    ({"formation_date": "0001-01-01"}, "formation_date"),
    ({"agreement_consent": CONSENT | {"timestamp": "2999-01-01T00:00:00Z"}}, "agreement_consent.timestamp"),
    ({"agreement_consent": CONSENT | {"timestamp": "2025-06-02T12:00:00"}}, "agreement_consent.timestamp"),
    ({"first_pocket": {"pocket_name": "P", "deposit_strategy_id": "UST-1W"}}, "first_pocket.deposit_strategy_id"),
)
OF_PARTY = (
    ({"date_of_birth": "2025-06-03"}, "date_of_birth"),
    ({"date_of_birth": "1890-01-01"}, "date_of_birth"),
    ({"date_of_birth": "2007-06-03", "roles": ["CONTROL_PERSON"]}, "date_of_birth"),
    ({"identification_number": SSN | {"identification_number": "666-45-6789"}}, NUMBER),
    (
        {"identification_number": SSN | {"identification_number_issuing_country": "CA"}},
        "identification_number.identification_number_issuing_country",
    ),
    ({"citizenship": "QQ"}, "citizenship"),
    ({"ownership_percentage": "1.01"}, "ownership_percentage"),
    ({"ownership_percentage": "0.50"}, "ownership_percentage"),  # 0.51 is taken
    ({"name": {"first_name": "A", "last_name": "\u200b"}}, "name.last_name"),
)
OF_PERSON = (
    ({"date_of_birth": "2007-06-03"}, "date_of_birth"),
    ({"identification_number": "123456789012345678901"}, "identification_number"),
    ({"investment_profile": PERSON["investment_profile"] | {"occupation": "x"}}, "investment_profile.occupation"),
    ({"investment_profile": {"employment_status": "EMPLOYED"}}, "investment_profile.occupation"),
    ({"citizenship_country": "XX"}, "citizenship_country"),
    ({"originally_onboarded_at": "2999-01-01T00:00:00Z"}, "originally_onboarded_at"),
    ({"agreement_consent": None}, "agreement_consent"),
)


async def test_an_invalid_application_field_is_refused_at_its_location(world):
    applicant = Applicant(world)
    made = (await world.post(V1, {}))["id"]
    for body, place in OF_BUSINESS:
        await world.invalid("POST", V1, body, loc=f"body.{place}")
        await world.invalid("PATCH", applicant.path(made), body, loc=f"body.{place}")
    party = await world.post(applicant.parties(made), {"ownership_percentage": "0.51"})
    for body, place in OF_PARTY:
        await world.invalid("POST", applicant.parties(made), body, loc=f"body.{place}")
    await world.patch(applicant.parties(made, party["id"]), {"ownership_percentage": "1"})
    for body, place in OF_PERSON:
        await world.invalid("POST", RETAIL, PERSON | body, loc=f"body.{place}")
    for path, body in ((applicant.path(made), {}), (applicant.parties(made, party["id"]), {})):
        await world.invalid("PATCH", path, body, loc="body")
    await world.invalid("POST", f"{RETAIL}{made}/documents/BYLAW/file/", b"%PDF-", loc="path.document_type")
    kept = await applicant.get(made)
    assert all(kept[name] is None for name in BUSINESS)
