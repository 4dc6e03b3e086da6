"""The ground on which commands stand: what is left of the last bank when one starts over."""

from billfold.wiring.cli_context import Wiring


def test_nothing_of_the_last_bank_reaches_the_next_when_a_sandbox_starts_over(tmp_path):
    for kept in ("rails/wire/inbox/answer.xml", "files/document", "mail/letter.eml", "tls/ca.pem"):
        path = tmp_path / kept
        path.parent.mkdir(parents=True)
        path.write_text("of the last time")
    (tmp_path / "sandbox.json").write_text("{}")
    Wiring({"BILLFOLD_STATE_DIR": str(tmp_path)}).delete_state(tmp_path, print)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.relative_to(tmp_path).as_posix() for path in left] == ["tls/ca.pem"]
