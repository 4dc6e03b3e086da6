"""Pages of problems, for people."""

import re

from billfold.http.openapi import reference
from billfold.platform.problems import PROBLEMS
from billfold.platform.problems.problem import Problem


def test_a_page_says_what_it_means_and_what_to_do():
    problem = Problem(
        "odd-one", 409, "It is <odd>", meaning="The `field` is & was odd.", remedy="Even it.", retryable=True
    )

    page = reference.problem_page(problem)
    text = reference.problem_as_markdown(problem)

    assert "<main><h1>It is &lt;odd&gt;</h1>" in page
    assert "The <code>field</code> is &amp; was odd." in page
    assert "the same request may be sent again" in page
    assert "the same request will fail again" in reference.problem_page(PROBLEMS["not-found"])
    assert "## What to do\n\nEven it.\n" in text
    assert "`odd-one`, status 409" in text


def test_the_index_leads_to_every_page_in_order():
    page = reference.problem_index(PROBLEMS.values())
    text = reference.problem_index_as_markdown(PROBLEMS.values())

    linked = re.findall(r'href="/docs/errors/([a-z-]+)"', page)
    assert linked == sorted(PROBLEMS)
    assert re.findall(r"\(errors/([a-z-]+)\)", text) == linked
