import re
from pathlib import Path

import pytest

import billfold
from billfold.platform.problems import ACCESS, PROBLEMS, REQUESTS, RETURNS, SANDBOX, STATES, TRANSFERS

_RAISED = re.compile(r"(?:Refused\(|super\(\).__init__\(|\bcode(?:: str)? = )\s*\"([a-z]+(?:-[a-z]+)+)\"")


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=lambda problem: problem.code)
def test_a_problem_is_rendered_in_full(problem):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", problem.code)
    assert 400 <= problem.status < 600
    assert not problem.title.endswith(".")
    assert problem.meaning.endswith(".")
    assert problem.remedy.endswith(".")
    assert (problem.meaning + problem.remedy + problem.title).count("`") % 2 == 0
    assert len(problem.remedy.split()) >= 4


def test_only_429_and_503_problems_are_retryable():
    assert all(p.retryable for p in PROBLEMS.values() if p.status in {429, 503})
    assert not any(p.retryable for p in PROBLEMS.values() if p.status in {403, 404, 412, 422})


def test_raised_problem_codes_equal_registered_codes():
    root = Path(billfold.__file__).parent
    sources = {path: path.read_text() for path in root.rglob("*.py") if path.parent.name != "problems"}
    raised = {(code, path.name) for path, text in sources.items() for code in _RAISED.findall(text)}
    named = "".join(sources.values())

    assert {each for each in raised if each[0] not in PROBLEMS} == set()
    assert [code for code in PROBLEMS if f'"{code}"' not in named] == []


def test_problem_codes_are_unique():
    assert len(PROBLEMS) == sum(map(len, (ACCESS, REQUESTS, RETURNS, SANDBOX, STATES, TRANSFERS)))
