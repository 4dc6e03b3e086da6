"""`billfold agreements`: the agreements in force are listed, changed and published again."""

from tests.support.applications import changed
from tests.support.world import UNKNOWN

from billfold.onboarding.agreements.texts import to_toml


def test_an_operator_publishes_a_changed_agreement_version(founded, tmp_path):
    assert "2025-06-01" in founded("agreements", "list")[1]
    file, odd = tmp_path / "new.toml", tmp_path / "odd.toml"
    status, texts = founded("agreements", "show", "2025-06-01")
    assert (status, texts.count("[[documents]]")) == (0, 20)
    file.write_text(to_toml(changed(paragraphs=("We sell [b]none",)).documents))
    odd.write_text(file.read_text()[:500])
    refused = founded("agreements", "publish", str(odd), "--release-date", "2025-09-01")
    assert (refused[0], "is not as expected: Unterminated" in refused[1]) == (1, True), refused
    past = founded("agreements", "publish", str(file), "--release-date", "2025-06-01")
    assert (past[0], "today is" in past[1]) == (1, True), past
    made = founded("agreements", "publish", str(file), "--release-date", "2025-09-01", "--required-by", "2025-10-01")
    assert (made[0], "can make no payments from 2025-10-01 on" in made[1]) == (0, True), made
    again = founded("agreements", "publish", str(file), "--release-date", "2025-09-01")
    assert (again[0], "not later than the last version, 2025-09-01" in again[1]) == (1, True)
    assert "We sell [b]none" in founded("agreements", "show", "2025-09-01")[1]
    listed = founded("agreements", "list")[1]
    assert listed.index("to come") < listed.index("in force")
    assert founded("agreements", "show", "2024-01-01")[0] == founded("agreements", "acceptances", UNKNOWN)[0] == 1
