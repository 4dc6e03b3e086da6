"""`billfold tax`: what it says of a customer, and that it writes nothing it should not."""

import pytest

NOBODY = "5d0c2a4e-8f00-8000-8000-0000000000e1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", NOBODY, "--year", "2025"), "There is no customer"),
        (("status", NOBODY, "--exempt"), "There is no customer"),
        (("file", "--year", "2025", "--out", "{}/1099.txt"), "The year 2025 is not over."),
        (("file", "--year", "2024", "--out", "{}/not/here.txt"), "cannot be written"),
    ],
)
def test_an_invalid_tax_command_is_refused(founded, tmp_path, words, said):
    status, output = founded("tax", *(each.format(tmp_path) for each in words))
    assert status
    assert said in output
    assert not list(tmp_path.glob("*.txt"))


def test_a_tax_file_is_readable_only_by_its_owner_and_never_overwritten(founded, tmp_path):
    out = tmp_path / "1099.txt"
    assert founded("tax", "file", "--year", "2024", "--out", str(out))[1] == f"✓ 0 returns are in {out}."
    assert out.stat().st_mode & 0o777 == 0o600
    content = out.read_bytes()
    # No recipient has anything to report: a transmitter and an end.
    assert (len(content), content[:1], content[750:751]) == (1500, b"T", b"F")
    assert "cannot be written: File exists" in founded("tax", "file", "--year", "2024", "--out", str(out))[1]
    refused = founded("tax", "file", "--year", "2024", "--out", f"{out}.2", BILLFOLD_TAX_NUMBER="12-34")
    assert "tax_number: must be nine digits" in refused[1]
    assert [each.name for each in tmp_path.glob("1099*")] == ["1099.txt"]
