"""The context of commands: deleting the state of a sandbox."""

from billfold.wiring.cli_context import Wiring


def test_deleting_the_sandbox_state_removes_all_bank_files_but_the_tls_authority(tmp_path):
    for kept in ("rails/wire/inbox/answer.xml", "files/document", "mail/letter.eml", "tls/ca.pem"):
        path = tmp_path / kept
        path.parent.mkdir(parents=True)
        path.write_text("of the last time")
    (tmp_path / "sandbox.json").write_text("{}")
    Wiring({"BILLFOLD_STATE_DIR": str(tmp_path)}).delete_state(tmp_path, print)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.relative_to(tmp_path).as_posix() for path in left] == ["tls/ca.pem"]
