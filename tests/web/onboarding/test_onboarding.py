"""People without an account fill in, review and submit an application with a mailed link."""

import pytest
from tests.journeys.test_nothing_personal_in_a_dump import places_of_personal_data
from tests.support.applications import ABROAD, BUSINESS, OWNER, PAGE, PICTURE, V2, Applicant, run_jobs
from tests.support.browser import Guest, first_match, forms_of, invite_path, link_in, mailed

from billfold.platform.clock import wall_now

CAROL, DAN = "carol@helpers.example", "dan@northwind.example"
PASSPORT = {
    "identification_number__identification_type": "PASSPORT",
    "identification_number__identification_number": "X7654321",
    "identification_number__identification_number_issuing_country": "CA",
}
HOME = {
    "address__street_address": "1 High Street",
    "address__city": "London",
    "address__postal_code": "E1 6AN",
    "address__country": "GB",
}


@pytest.fixture
async def new_guest(pages_app, pages_clock):
    """Make guests, each with a browser of their own."""
    pages_clock.now = wall_now()
    made = []

    def make():
        made.append(Guest(pages_app))
        return made[-1]

    yield make
    for each in made:
        await each.close()


@pytest.fixture
def invite(customer_desk):
    """Invite a person; return the path of the mailed link, and the response."""

    async def send(application_id, kind, email, **fields):
        body = {"invitation_type": kind, **fields}
        if kind == "COLLABORATOR":
            body = {"invitation_type": kind, "collaborators": [{"email": email, **fields}]}
        elif "email" not in body:
            body["email"] = email
        made = await customer_desk.post(invite_path(application_id, "invite"), body, status=200)
        return link_in((await mailed(customer_desk.bank))[email]), made["invites"][0]

    return send


async def fill_business(carol):
    """Fill in all that is asked of the business."""
    page = await carol.fill(
        "business/business",
        name="Fabrikam Ltd",
        entity_type="SOLE_PROPRIETOR",
        formation_date="2015-03-01",
        identification_number__type="EIN",
        identification_number__identification_number="12-3456789",
        industry__industry="SOFTWARE",
        website="https://fabrikam.example",
    )
    assert page.headers["location"] == f"{carol.base}/business/contact?done=saved"
    await carol.fill(
        "business/contact",
        **HOME,
        contact__name__first_name="Ada",
        contact__name__last_name="Marsh",
        contact__email="ada@fabrikam.example",
        contact__phone_number="(212) 555-0100",
    )
    await carol.fill(
        "business/activity",
        **{f"risk_info__{name}": value for name, value in BUSINESS["risk_info"].items() if isinstance(value, str)},
        risk_info__has_current_enforcement_actions="no",
        risk_info__risk_categories__NONE="yes",
    )


async def fill_person(carol):
    """Add a person with everything that is asked of them; return where they are."""
    page = await carol.fill("people/new", name__first_name="Bo", name__last_name="Reyes", date_of_birth="1980-02-29")
    person = first_match(rf"{carol.base}/(people/[0-9a-f-]{{36}})/address\?done=saved", page.headers["location"])
    await carol.fill(f"{person}/address", **HOME)
    await carol.fill(f"{person}/identification", **PASSPORT)
    roles = {f"roles__{each}": "yes" for each in ("CONTROL_PERSON", "AUTHORIZED_REPRESENTATIVE")}
    await carol.fill(f"{person}/role", **roles, ownership_percentage="20.5")
    return person


async def test_a_collaborator_completes_an_application_with_masked_tax_ids(customer_desk, new_guest, invite):
    applicant = Applicant(customer_desk, V2)
    made = (await customer_desk.post(V2, {"name": "Fabrikam"}))["id"]
    carol = await new_guest().open((await invite(made, "COLLABORATOR", CAROL))[0])
    await fill_business(carol)
    stored = await applicant.get(made)
    assert stored["identification_number"]["identification_number"] == "*****6789"
    assert stored["contact"]["phone_number"] == "+12125550100"
    assert stored["risk_info"] == BUSINESS["risk_info"]
    person = await fill_person(carol)
    (party,) = await customer_desk.get(applicant.parties(made))
    assert (party["ownership_percentage"], len(party["roles"])) == ("0.205", 2)
    (document,) = await applicant.documents(made)
    await carol.upload(document["id"], PICTURE, kind="image/png", name="Paß 1.png")
    assert carol.page.headers["location"] == f"{carol.base}/documents?done=uploaded"
    await carol.follow()
    assert "Paß 1.png" in carol.text
    assert (await applicant.get(made))["missing_requirements"] == ["agreement_consent"]
    await carol.fill(f"{person}/identification", go="overview")
    await carol.at(f"{person}/identification")
    assert "X7654321" not in carol.page.text
    assert "Saved as ****4321" in carol.text
    token = {"csrf": carol.csrf}
    for path in (person, person):
        await carol.post(f"{carol.base}/{path}", token)
    assert await customer_desk.get(applicant.parties(made)) == []


async def test_an_authorized_person_submits_only_the_application_version_they_reviewed(
    customer_desk, new_guest, invite
):
    applicant = Applicant(customer_desk, V2)
    made = await applicant.simple(agreement_consent=None)
    dan = await new_guest().open((await invite(made, "AUTHORIZED_PERSON", DAN, first_name="Dan", last_name="Poe"))[0])
    await dan.follow()
    assert "Northwind Trading LLC" in dan.text
    for number in ("12-3456789", "123-45-6789"):
        assert number not in dan.page.text
    await dan.send(f"{dan.base}/review")
    assert dan.page.status_code == 422
    await customer_desk.patch(applicant.path(made), {"website": "https://evil.example"})
    await dan.send(f"{dan.base}/review", accept="yes")
    assert (dan.page.status_code, "changed while you read it" in dan.text) == (409, True)
    token = dan.csrf
    await dan.send(f"{dan.base}/review", accept="yes")
    await dan.follow()
    assert "The application is submitted" in dan.text
    assert "The application is submitted" in (await dan.post(f"{dan.base}/review", {"csrf": token})).text
    submitted = await applicant.get(made)
    assert submitted["agreement_consent"]["version"] == BUSINESS["agreement_consent"]["version"]
    await run_jobs(customer_desk.bank)
    assert (await applicant.get(made))["status"] == "APPROVED"
    accepted = await customer_desk.bank.pool.fetchrow(
        "SELECT ip_address, user_agent FROM agreement_acceptance WHERE accepted_by = 'INVITED'"
    )
    assert tuple(accepted) == ("203.0.113.7", dan.http.headers["user-agent"])
    (sent,) = (await customer_desk.get(invite_path(made, "invites")))["invites"]
    assert sent["status"] == "ACCEPTED"


async def test_incomplete_or_invalid_application_input_is_kept_as_a_draft_on_any_device(
    customer_desk, new_guest, invite
):
    applicant = Applicant(customer_desk, V2)
    made = (await customer_desk.post(V2, {"name": "Fabrikam"}))["id"]
    link, _ = await invite(made, "COLLABORATOR", CAROL)
    carol = await new_guest().open(link)
    page = await carol.fill(
        "business/contact",
        address__city="London",
        contact__name__first_name="Ada",
        contact__email="nobody",
        contact__phone_number="+12125550100",
    )
    assert page.status_code == 422
    assert set(carol.mistakes) >= {"address.street_address", "contact.name.last_name", "contact.email"}
    stored = await applicant.get(made)
    assert (stored["address"], stored["contact"]["phone_number"]) == (None, "+12125550100")
    phone = await new_guest().open(link, begins=False)
    assert "Not complete" in phone.text
    await phone.at("business/contact")
    assert set(phone.mistakes) == set(carol.mistakes)
    for value in ("London", "Ada", "nobody"):
        assert f'value="{value}"' in phone.page.text
    page = await phone.fill(
        "business/contact", **HOME, contact__name__last_name="Marsh", contact__email="a@b.example", go="overview"
    )
    assert page.headers["location"] == f"{phone.base}?done=saved"
    assert (await applicant.get(made))["address"]["city"] == "London"
    await phone.at("business/contact")
    assert not phone.mistakes
    await phone.fill("business/business", identification_number__type="EIN")
    assert "identification_number.identification_number" in phone.mistakes
    await phone.fill("business/contact", contact__email="nobody.at.fabrikam")
    assert await places_of_personal_data(customer_desk.bank, "", [b"nobody.at.fabrikam", b"high street"]) == {}


async def test_a_concurrent_save_of_an_application_page_shows_the_earlier_changes(customer_desk, new_guest, invite):
    applicant = Applicant(customer_desk, V2)
    made = (await customer_desk.post(V2, {"name": "Fabrikam"}))["id"]
    carol = await new_guest().open((await invite(made, "COLLABORATOR", CAROL))[0])
    dan = await new_guest().open((await invite(made, "COLLABORATOR", DAN))[0])
    for each in (carol, dan):
        await each.at("business/business")
    path = "business/business"
    await carol.send(f"{carol.base}/{path}", name="Fabrikam Ltd")
    await dan.send(f"{dan.base}/{path}", name="Fabrikam Inc", website="fabrikam.example")
    assert (dan.page.status_code, "they replace these" in dan.text, "Fabrikam Ltd" in dan.text) == (409, True, True)
    assert (await applicant.get(made))["name"] == "Fabrikam Ltd"
    await dan.send(f"{dan.base}/{path}")
    stored = await applicant.get(made)
    assert (stored["name"], stored["website"]) == ("Fabrikam Inc", "fabrikam.example")


async def test_a_related_party_reads_and_changes_only_the_requested_fields(customer_desk, new_guest, invite):
    applicant = Applicant(customer_desk, V2)
    made = await applicant.filled(OWNER, uploaded=False, address=ABROAD)
    asked = ["name", "date_of_birth", "identification_number"]
    link, sent = await invite(made, "RELATED_PARTY", DAN, first_name="Dan", last_name="Poe", requested_fields=asked)
    own, (other, _) = (
        sent["related_party_id"],
        [each["id"] for each in await customer_desk.get(applicant.parties(made))],
    )
    dan = await new_guest().open(link)
    for hidden in ("Marsh", "1980-02-29", "6789", "Main Street"):
        assert hidden not in dan.page.text
    await dan.fill(f"people/{own}/person", date_of_birth="1990-01-01")
    await dan.fill(f"people/{own}/identification", **PASSPORT)
    await dan.at(f"people/{own}/person")
    extra = {"csrf": dan.csrf, "mark": "", "roles.CONTROL_PERSON": "yes", "email": "x@y.example", "title": "Boss"}
    await dan.send(f"{dan.base}/people/{own}/person", **extra)
    party = (await customer_desk.get(applicant.parties(made)))[1]
    assert (party["date_of_birth"], party["title"], party["email"], party["roles"]) == ("1990-01-01", None, DAN, [])
    token = extra["csrf"]
    documents = {each["type"]: each["id"] for each in await applicant.documents(made)}
    others = [f"people/{other}/person", f"people/{own}/address", f"people/{own}/role"]
    for path in (*others, "people/new", "review", "business/business"):
        assert (await dan.at(path)).status_code == 404, path
        assert (await dan.post(f"{dan.base}/{path}", {"csrf": token, "accept": "yes"})).status_code == 404, path
    assert (await dan.post(f"{dan.base}/people/{own}", {"csrf": token})).status_code == 403
    assert (await dan.upload(documents["ORG_CHART"], PAGE)).status_code == 404
    assert (await dan.upload(documents["PASSPORT"], PICTURE, kind="image/png", name="p.png")).status_code == 303
    await dan.at()
    assert "Nothing is missing" in dan.text
    await customer_desk.ask("DELETE", applicant.parties(made, own), status=204)
    for each in (dan.base, link):
        assert (await dan.go(each)).status_code == 404


async def test_invite_links_open_only_their_own_invite_until_withdrawn_or_expired(
    customer_desk, new_guest, invite, pages_clock
):
    made, other = [(await customer_desk.post(V2, {"name": name}))["id"] for name in ("Fabrikam", "Contoso")]
    link, sent = await invite(made, "COLLABORATOR", CAROL)
    carol = await new_guest().open(link, begins=False)
    assert (await carol.at("business/business")).headers["location"] == carol.base
    elsewhere = carol.base.replace(sent["id"], (await invite(other, "COLLABORATOR", DAN))[1]["id"])
    assert (await carol.go(elsewhere)).status_code == 404
    secret = carol.http.cookies["__Host-invite-" + sent["id"]]
    stolen = {"cookie": f"__Host-invite-{elsewhere[-36:]}={secret}"}
    assert (await carol.http.get(elsewhere, headers=stolen)).status_code == 404
    assert (await new_guest().go(link.replace("=", "=x"))).status_code == 404
    listed = await customer_desk.get(invite_path(made, "invites"))
    assert listed["invites"][0]["status"] == "PENDING"
    pages_clock.forward(minutes=61)
    assert (await carol.at()).status_code == 404
    await carol.open(link)
    await carol.send(f"{carol.base}/leave")
    assert (await carol.at()).status_code == 404
    await carol.open(link, begins=False)
    newer, renewed = await invite(made, "COLLABORATOR", CAROL, first_name="Carol")
    assert renewed["id"] == sent["id"]
    assert (await carol.at()).status_code == 404
    await carol.open(link)
    await carol.open(newer, begins=False)
    await customer_desk.ask("DELETE", invite_path(made, "invites", sent["id"]), status=204)
    for gone in (carol.base, link, newer):
        assert (await carol.go(gone)).status_code == 404
    again, _ = await invite(made, "COLLABORATOR", CAROL)
    await customer_desk.later(days=7)
    assert (await carol.go(again)).status_code == 404


async def test_an_upload_that_the_api_refuses_is_refused_on_the_onboarding_page(customer_desk, new_guest, invite):
    made = (await customer_desk.post(V2, {"name": "Fabrikam", "entity_type": "PARTNERSHIP"}))["id"]
    carol = await new_guest().open((await invite(made, "COLLABORATOR", CAROL))[0])
    applicant = Applicant(customer_desk, V2)
    (document,) = await applicant.documents(made)
    script = PAGE.replace(b"/Catalog", b"/Catalog/OpenAction<</S/JavaScript/JS(1)>>")
    for content, kind, name, status in (
        (script, "application/pdf", "a.pdf", 422),
        (PAGE, "image/png", "a.png", 415),
        (PAGE, "text/html", "a.html", 415),
        (PAGE, "application/pdf", "a\u202efdp.exe", 422),
        (b"", "application/pdf", "a.pdf", 422),
        (b"%PDF-" + b"x" * 52_428_800, "application/pdf", "a.pdf", 413),
    ):
        page = await carol.upload(document["id"], content, kind=kind, name=name)
        assert page.status_code == status, (kind, name)
        assert "The file was not accepted" in carol.text
    assert (await carol.upload(document["id"], PAGE, csrf="x")).status_code == 403
    assert await applicant.documents(made) == [document]


async def test_a_double_click_adds_one_related_party_and_saves_by_others_keep_drafts(customer_desk, new_guest, invite):
    applicant = Applicant(customer_desk, V2)
    made = (await customer_desk.post(V2, {"name": "Fabrikam"}))["id"]
    carol = await new_guest().open((await invite(made, "COLLABORATOR", CAROL))[0])
    dan = await new_guest().open((await invite(made, "COLLABORATOR", DAN))[0])
    await carol.at("people/new")
    action = f"{carol.base}/people/new"
    form = forms_of(carol.page.text)[action] | {"name.first_name": "Bo", "name.last_name": "R\u00e9yes " + "x" * 44}
    for _ in range(2):
        assert (await carol.post(action, form)).status_code == 303
    (person,) = await customer_desk.get(applicant.parties(made))
    await customer_desk.patch(applicant.parties(made, person["id"]), {"title": "Boss"})
    assert (await carol.post(action, form | {"title": "Clerk"})).status_code == 409
    assert (await customer_desk.get(applicant.parties(made)))[0]["title"] == "Boss"
    await carol.fill("business/contact", address__city="London", go="stay")
    assert (carol.page.status_code, "overview" in carol.page.text) == (422, True)
    await dan.fill("business/contact", **HOME)
    await carol.at("business/contact")
    assert "You had typed, and not completed" in carol.text
    assert 'value="1 High Street"' in carol.page.text


async def test_changing_the_email_of_an_invite_invalidates_its_earlier_links(customer_desk, new_guest, invite):
    made = (await customer_desk.post(V2, {"name": "Fabrikam"}))["id"]
    name = {"first_name": "Dan", "last_name": "Poe"}
    first, sent = await invite(made, "RELATED_PARTY", DAN, **name)
    party = {"related_party_id": sent["related_party_id"]}
    second, _ = await invite(made, "RELATED_PARTY", DAN, **party, first_name="Daniel")
    third, moved = await invite(made, "RELATED_PARTY", "dan@elsewhere.example", **party)
    assert moved["id"] == sent["id"]
    for link, status in ((first, 404), (second, 404), (third, 303)):
        assert (await new_guest().go(link)).status_code == status
