import re
from pathlib import Path

import pytest

import billfold
from billfold.platform.problems import PROBLEMS
from billfold.platform.problems import pages as problems_pages
from billfold.platform.problems.problem import Problem, by_code

_DEMANDED = {
    "already-approved": 412,
    "already-closed": 412,
    "ambiguous-signature": 400,
    "application-not-editable": 409,
    "card-already-activated": 409,
    "clock-would-go-back": 409,
    "counterparty-not-verified": 422,
    "customer-has-balance": 422,
    "customer-not-open": 409,
    "duplicate-id": 409,
    "feature-not-enabled": 403,
    "forbidden": 403,
    "https-required": 403,
    "idempotency-in-progress": 409,
    "idempotency-key-reused": 422,
    "insufficient-funds": 422,
    "insufficient-user-authentication": 401,
    "internal-error": 500,
    "invalid-credentials": 401,
    "invalid-dpop-proof": 401,
    "invalid-input": 422,
    "invalid-signature": 401,
    "ip-not-allowed": 403,
    "last-administrator": 409,
    "last-open-pocket": 422,
    "login-locked": 429,
    "malformed-json": 400,
    "method-not-allowed": 405,
    "no-open-portal": 409,
    "not-found": 404,
    "notification-type-not-configurable": 403,
    "payload-too-large": 413,
    "pocket-frozen": 409,
    "pocket-not-empty": 422,
    "pocket-not-open": 409,
    "pocket-strategy-locked": 409,
    "portal-not-open": 409,
    "public-key-reused": 422,
    "rate-limited": 429,
    "sec-code-not-enabled": 403,
    "self-approval": 403,
    "too-many-pockets": 422,
    "transfer-request-not-pending": 409,
    "unauthorized": 401,
    "unavailable": 503,
    "unsupported-media-type": 415,
}
_RAISED = re.compile(r"(?:Refused\(|super\(\).__init__\(|\bcode(?:: str)? = )\s*\"([a-z]+(?:-[a-z]+)+)\"")


@pytest.mark.parametrize(("code", "status"), _DEMANDED.items())
def test_a_demanded_problem_has_its_status(code, status):
    assert PROBLEMS[code].status == status


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=lambda problem: problem.code)
def test_a_problem_is_rendered_in_full(problem):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", problem.code)
    assert 400 <= problem.status < 600
    assert not problem.title.endswith(".")
    assert problem.meaning.endswith(".")
    assert problem.remedy.endswith(".")
    assert (problem.meaning + problem.remedy + problem.title).count("`") % 2 == 0
    assert len(problem.remedy.split()) >= 4


def test_too_many_and_unavailable_may_be_tried_again():
    assert all(p.retryable for p in PROBLEMS.values() if p.status in {429, 503})
    assert not any(p.retryable for p in PROBLEMS.values() if p.status in {403, 404, 412, 422})


def test_every_code_that_is_raised_is_registered():
    root = Path(billfold.__file__).parent

    raised = {
        (code, path.relative_to(root).as_posix())
        for path in root.rglob("*.py")
        for code in _RAISED.findall(path.read_text())
    }

    assert {each for each in raised if each[0] not in PROBLEMS} == set()


def test_two_problems_do_not_share_a_code():
    one = PROBLEMS["not-found"]

    with pytest.raises(ValueError, match="share"):
        by_code(one, one)


def test_a_page_says_what_it_means_and_what_to_do():
    problem = Problem(
        "odd-one", 409, "It is <odd>", meaning="The `field` is & was odd.", remedy="Even it.", retryable=True
    )

    page = problems_pages.as_html(problem)
    text = problems_pages.as_markdown(problem)

    assert "<h1>It is &lt;odd&gt;</h1>" in page
    assert "The <code>field</code> is &amp; was odd." in page
    assert "the same request may be sent again" in page
    assert "the same request will fail again" in problems_pages.as_html(PROBLEMS["not-found"])
    assert "## What to do\n\nEven it.\n" in text
    assert "`odd-one`, status 409" in text


def test_the_index_leads_to_every_page_in_order():
    page = problems_pages.index_as_html(PROBLEMS.values())
    text = problems_pages.index_as_markdown(PROBLEMS.values())

    linked = re.findall(r'href="/docs/errors/([a-z-]+)"', page)
    assert linked == sorted(PROBLEMS)
    assert re.findall(r"\(errors/([a-z-]+)\)", text) == linked
