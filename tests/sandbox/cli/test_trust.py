"""Browsers trust the authority of a sandbox in the stores of one person."""

from pathlib import Path

import pytest

from billfold.sandbox.cli.trust import commands_to_trust

CA = Path("/state/tls/ca.pem")


@pytest.mark.parametrize(("platform", "program"), [("darwin", "security"), ("win32", "certutil")])
def test_the_authority_goes_to_the_store_of_the_person_who_asks(platform, program, tmp_path):
    (command,) = commands_to_trust(platform, tmp_path, CA)
    assert command[0] == program
    assert command[-1] == str(CA)


def test_the_stores_of_chrome_and_firefox_get_the_authority_and_a_missing_one_is_made(tmp_path):
    profile = tmp_path / ".mozilla/firefox/abc.default"
    profile.mkdir(parents=True)
    (profile / "cert9.db").touch()
    made, created, chrome, firefox = commands_to_trust("linux", tmp_path, CA)
    assert made == ["mkdir", "-p", str(tmp_path / ".pki/nssdb")]
    assert "-N" in created
    assert [each[2] for each in (chrome, firefox)] == [f"sql:{tmp_path}/.pki/nssdb", f"sql:{profile}"]
    (tmp_path / ".pki/nssdb").mkdir(parents=True)
    (tmp_path / ".pki/nssdb/cert9.db").touch()
    assert commands_to_trust("linux", tmp_path, CA) == [chrome, firefox]
