"""Tests stand where what they test stands: `platform/money.py` is tested by `tests/platform/test_money.py`.

Folders of tests that are not named after a package are about everything: stories, properties,
the simulation, the architecture.
"""

import pytest
from tests.architecture.pages import ROOT, SOURCE

PACKAGES = frozenset(path.parent.name for path in SOURCE.glob("*/__init__.py"))
SPANNING = {
    "domain/tbills/test_market_tables.py": "the market written to its tables and read again",
    "engine/test_lost_connection.py": "the engine with a line that breaks",
    "engine/verify/test_damage.py": "the whole proof against every kind of damaged row",
    "flows/test_machine.py": "all flows together, under any sequence of commands",
    "interfaces/auth/test_fapi2.py": "modules of the FAPI 2.0 conformance suite, one test each",
    "interfaces/auth/test_real_clients.py": "clients that nobody here wrote, in Node",
    "interfaces/auth/test_two_processes.py": "several processes over one database",
    "interfaces/cli/test_commands.py": "commands of several modules against one bank",
}
"""Tests of more than one module: what each is about."""

MIRRORED = sorted(
    path.relative_to(ROOT / "tests") for package in PACKAGES for path in (ROOT / "tests" / package).rglob("test_*.py")
)


@pytest.mark.parametrize("test", MIRRORED, ids=str)
def test_a_test_stands_where_its_module_does(test):
    module = SOURCE / test.parent / test.stem.removeprefix("test_")
    there = module.with_suffix(".py").exists() or (module / "__init__.py").exists()
    assert there or str(test) in SPANNING


def test_no_exemption_is_left_over():
    assert {test for test in SPANNING if not (ROOT / "tests" / test).exists()} == set()


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_every_package_has_tests(package):
    assert package in WITHOUT_OWN_TESTS or any(test.parts[0] == package for test in MIRRORED)


WITHOUT_OWN_TESTS = frozenset({"ports"})  # types only
