"""A production bank starts from what `billfold init production` writes, as it is written."""

import asyncio
import base64
import json
import os
import re
import secrets
import signal
import subprocess
import time
from contextlib import suppress
from urllib.parse import unquote

import asyncpg
import httpx
import pytest
import yaml
from tests.support.browser import first_match
from tests.support.sandbox_process import free_ports
from tests.wiring.test_production import START_SECONDS

from billfold.platform.database import embedded
from billfold.wiring.cli.app import run
from billfold.wiring.cli.init import _quoted
from billfold.wiring.cli_context import Wiring

ANSWERS = {
    "domain": "bank.example",
    "bank_name": "Farmer's & Miller's Bank",
    "bank_routing_number": "021000021",
    "bank_bic": "FBOBUS33",
    "bank_address": "1 Bill Street, New York, NY 10004, US",
    "bank_phone": "+1 212 555 0100",
    "mail_url": "smtps://user:p%40ss$word@mail.bank.example:465",
    "custodian": "none",
}
CARD_KEY = base64.b64encode(secrets.token_bytes(32)).decode()


@pytest.fixture
def init(capsys, tmp_path):
    """Run `billfold init production` into a new folder; return (status, output, folder)."""

    def call(*words, folder=None, **answers):
        made = folder or tmp_path / "bank"
        given = [word for name, text in (ANSWERS | answers).items() for word in ("--answer", f"{name}={text}")]
        status = run(Wiring({}), arguments=["init", "production", str(made), "--yes", *given, *words])
        return status, " ".join("".join(capsys.readouterr()).split()), made

    return call


@pytest.fixture
def server(tmp_path):
    """A PostgreSQL of this test, whose roles are its own."""
    (tmp_path / "server").mkdir()
    started = embedded.start(tmp_path / "server", settings=embedded.THROWAWAY_SETTINGS)
    yield started
    embedded.stop(started)


async def execute(dsn, script):
    conn = await asyncpg.connect(dsn)
    try:
        for statement in filter(None, map(str.strip, script.split(";"))):
            await conn.execute(statement)
    finally:
        await conn.close()


def unit_environment(folder, unit, port):
    """Return what systemd gives a process, and its command line."""
    text = (folder / unit).read_text().replace("%i", port).replace("%d", str(folder / "secrets"))
    lines = [line.partition("=") for line in text.splitlines()]
    stated = [pair.partition("=") for name, _, value in lines if name == "Environment" for pair in value.split()]
    credentials = [value.split(":") for name, _, value in lines if name == "LoadCredential"]
    assert [name for name, path in credentials if path != str(folder / "secrets" / name)] == []
    values = {name: value for name, _, value in lines}
    script = f"set -a; . '{values['EnvironmentFile']}'; env -0"
    read = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split("\0")
    from_file = dict(line.split("=", 1) for line in read if line.startswith("BILLFOLD_"))
    return {name: value for name, _, value in stated} | from_file, values["ExecStart"]


def test_a_bank_starts_from_the_files_that_init_writes(init, server, tmp_path):
    socket_folder = unquote(first_match(r"host=([^&]+)", server.dsn))
    status, said, folder = init(database=socket_folder, card_processor_key=CARD_KEY)
    assert (status, said.count("Four steps remain")) == (0, 1), said
    assert oct(folder.stat().st_mode)[-3:] == "700"
    assert [path.name for path in folder.rglob("*") if path.is_file() and CARD_KEY in path.read_text()] == [
        "card_processor_key"
    ]
    modes = {path.name: oct(path.stat().st_mode)[-3:] for path in folder.rglob("*") if path.is_file()}
    assert {name: mode for name, mode in modes.items() if mode != "600"} == {"billfold": "700"}
    asyncio.run(execute(server.dsn, (folder / "roles.sql").read_text()))
    port, http_port, management_port = map(str, free_ports(3))
    environment = {"PATH": os.environ["PATH"], "BILLFOLD_STATE_DIR": str(tmp_path), "BILLFOLD_PORT": port}
    command = [str(folder / "billfold")]
    migrated = subprocess.run([*command, "migrate", "up"], env=environment, capture_output=True, text=True, check=False)
    assert migrated.returncode == 0, migrated.stderr
    given, exec_start = unit_environment(folder, "billfold-serve@.service", environment["BILLFOLD_PORT"])
    assert "BILLFOLD_DATABASE_OWNER_URL_FILE" not in given
    assert given["BILLFOLD_CARD_PROCESSOR_KEY_FILE"] == str(folder / "secrets/card_processor_key")
    given |= environment | {"BILLFOLD_HTTP_PORT": http_port, "BILLFOLD_MANAGEMENT_PORT": management_port}
    with subprocess.Popen(exec_start.split(), env=given | {"BILLFOLD_DRAIN_SECONDS": "0"}) as process:
        try:
            assert when_answered(process, environment["BILLFOLD_PORT"]) == 200
            said = subprocess.run([*command, "doctor", "--json"], env=environment, capture_output=True, check=False)
        finally:
            process.send_signal(signal.SIGTERM)
    checks = {each["what"]: each for each in json.loads(said.stdout)["checks"]}
    assert {what for what, each in checks.items() if not each["ok"]} - {"market data"} == {"partners", "operators"}
    assert checks["rights"]["found"] == "the application adds to the ledger and owns nothing"


def when_answered(process, port):
    """Return the status of /health once the server answers, as the proxy asks it."""
    headers = {"Host": "api.bank.example", "X-Forwarded-Proto": "https"}
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{port}/health", headers=headers, timeout=5).status_code
        time.sleep(0.2)
    raise AssertionError("the server does not start")


def test_init_overwrites_nothing_and_names_every_wrong_or_missing_answer(init, tmp_path, capsys, monkeypatch):
    taken = tmp_path / "taken"
    taken.mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with monkeypatch.context() as patched:
        patched.setattr("sys.prefix", "/opt/my programs")
        assert "/opt/my programs/bin/billfold has a space" in init()[1]
    for folder in (taken, tmp_path / "link"):
        status, said, _ = init(folder=folder)
        assert (status, "nothing is overwritten" in said) == (1, True)
    wrong = {"bank_bic": "X", "mail_url": "http://secret", "color": "red", "seed": "mine", "bank_name": "A 'b' $c"}
    status, said, folder = init(**wrong)
    assert (status, folder.exists()) == (1, False)
    assert [name for name in wrong if name not in said] == []
    assert "http://secret" not in said
    assert init(behind_proxy="no", tls_certificate="/nowhere", tls_key="/nowhere")[1].count("a file that is there") == 2
    assert run(Wiring({}), arguments=["init", "production", str(folder), "--yes"]) == 1
    assert "domain, bank_name, bank_routing_number" in " ".join(capsys.readouterr().err.split())
    assert [each for each in tmp_path.iterdir() if each not in {taken, tmp_path / "link"}] == []


def test_answers_come_from_a_file_or_the_terminal_and_compose_gets_its_own_files(init, tmp_path, capsys, monkeypatch):
    assert run(Wiring({}), arguments=["init", "production", "--questions"]) == 0
    template = capsys.readouterr().out
    template = template.replace('"systemd"', '"compose"').replace('"files"', '"none"')
    for name, text in ANSWERS.items():
        template = template.replace(f'\n{name} = ""', f"\n{name} = {json.dumps(text)}")
    (tmp_path / "bank.toml").write_text(template)
    folder = tmp_path / "composed"
    words = ["init", "production", str(folder), "--answers", str(tmp_path / "bank.toml"), "--yes"]
    given = ["--answer", "trusted_proxies=10.1.0.0/16", "--answer", f"card_processor_key={CARD_KEY}"]
    assert run(Wiring({}), arguments=[*words[:2], str(tmp_path / "other"), *words[3:], *given]) == 0
    assert "BILLFOLD_TRUSTED_PROXIES=10.1.0.0/16" in (environment := (tmp_path / "other/billfold.env").read_text())
    assert CARD_KEY not in environment
    serve = yaml.safe_load((tmp_path / "other/compose.yaml").read_text())["services"]["serve"]
    assert serve["environment"]["BILLFOLD_CARD_PROCESSOR_KEY_FILE"] == "/run/secrets/card_processor_key"
    assert "card_processor_key" in serve["secrets"]
    assert run(Wiring({}), arguments=words) == 0
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    assert {each["file"] for each in compose["secrets"].values()} == {
        str(path.relative_to(folder)) for path in (folder / "secrets").iterdir()
    }
    assert "PASSWORD" in (roles := (folder / "secrets/roles.sql").read_text())
    (password,) = re.findall(r"//billfold:([^@]+)@postgres:5432/", (folder / "secrets/owner").read_text())
    assert f"billfold LOGIN PASSWORD '{password}'" in roles
    assert "BILLFOLD_TRUSTED_PROXIES=172.30.64.0/24" in (folder / "billfold.env").read_text()
    typed = iter(["systemd", "", "bank example", "bank.example", *[""] * 40])
    monkeypatch.setattr(
        "typer.prompt",
        lambda text, default, **_: next(typed) or default or (ANSWERS | {"custodian_account": "SAFE-1"})[text],
    )
    assert run(Wiring({}), arguments=["init", "production", str(tmp_path / "typed")]) == 0
    assert "domain is not a host name" in capsys.readouterr().err


def test_a_remote_database_is_reached_only_with_a_verified_certificate(init, tmp_path):
    for number, (server, ending) in enumerate(
        {"10.0.0.7:5432": "?sslmode=verify-full", "[::1]:5432": "", "localhost:5432": ""}.items()
    ):
        status, said, folder = init(folder=tmp_path / str(number), database=server)
        assert status == 0, said
        assert (folder / "secrets/owner").read_text().endswith(f"@{server}/billfold{ending}\n")
    assert "database is not like 127.0.0.1:5432" in init(database="::1:5432")[1]


@pytest.mark.parametrize("text", ["O'Neil", 'the "first"', "$HOME `id`", "a=b c", "Ærø", "#1", "", "x;y|z&&w"])
def test_quoted_values_are_read_by_a_shell_as_they_are(text):
    said = subprocess.run(
        ["sh", "-c", f'X={_quoted(text)}; printf %s "$X"'], capture_output=True, text=True, check=True
    )
    assert said.stdout == text


@pytest.mark.parametrize("text", ["O'Neil $1", "a\\b'", "'`\"", "back\\slash"])
def test_values_that_programs_read_differently_are_refused(text):
    with pytest.raises(ValueError, match=re.escape(text)):
        _quoted(text)
