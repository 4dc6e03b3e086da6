"""The command line: every command has help, and every error names the next step."""

import os
import subprocess
import sys
from pathlib import Path
from socket import socket
from typing import Any

import pytest
import typer
from tests.support.environments import processor_seconds
from typer.testing import CliRunner

from billfold import __version__
from billfold.__main__ import main
from billfold.cli import command as cli_command
from billfold.wiring.cli.app import build_app, run
from billfold.wiring.cli_context import Wiring
from billfold.wiring.command_list import TOPICS, abouts_of_commands

HELP_SECONDS_MAX = 0.3


def commands(app, words=()):
    """Yield the words of every command and every group, hidden ones left out."""
    group = typer.main.get_command(app)
    yield from _below(group, words)


def _below(group, words):
    for name, command in group.commands.items():
        if command.hidden:
            continue
        yield (*words, name)
        if hasattr(command, "commands"):
            yield from _below(command, (*words, name))


ALL = sorted(commands(build_app(Wiring({}))))


def test_commands_of_every_part_are_registered():
    assert {("serve",), ("sandbox",), ("verify",), ("clock", "advance"), ("partner", "create")} <= set(ALL)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_help_of_every_command_shows_an_example(words):
    result = CliRunner().invoke(build_app(Wiring({})), [*words, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    shown = " ".join(result.output.split())
    assert "billfold" in shown[shown.index("Example") :]


def test_the_version_is_printed_without_the_command_line():
    script = "import sys; from billfold.__main__ import main; main(); print('typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["billfold", __version__, "False"]


def test_the_help_lists_every_command_by_topic_before_any_is_imported(capsys, monkeypatch):
    abouts = abouts_of_commands(is_production=False)
    group: Any = typer.main.get_command(build_app(Wiring({})))
    own = group.commands
    assert abouts.keys() == {name for name, each in own.items() if not each.hidden}
    assert [name for name, about in abouts.items() if not (own[name].help or "").startswith(about)] == []
    monkeypatch.setattr(sys, "argv", ["billfold", "--help"])
    main()
    shown = capsys.readouterr().out
    assert [topic for topic in TOPICS if f"\n{topic}\n" not in shown] == []
    program = "import sys; from billfold.__main__ import main; sys.argv = ['billfold', '--help']; main()"
    assert min(processor_seconds(sys.executable, program) for _ in range(3)) < HELP_SECONDS_MAX
    monkeypatch.setenv("BILLFOLD_ENVIRONMENT", "production")
    main()
    assert "trigger" not in capsys.readouterr().out


def test_a_shell_completes_the_names_of_commands():
    def completed(words):
        wanted = {"_BILLFOLD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        program = Path(sys.executable).with_name("billfold")
        return subprocess.check_output([program], env={**os.environ, **wanted}, text=True).split()

    assert completed("billfold card") == ["cards", "card-settlement"]
    assert completed("billfold partner ro") == ["rotate-secret"]


def test_wrong_command_line_usage_exits_with_status_two(capsys):
    assert run(Wiring({}), arguments=["clock", "nonsense"]) == 2


def test_all_wrong_settings_are_reported_when_a_command_starts(capsys):
    environment = {"BILLFOLD_PORT": "high", "BILLFOLD_ENGINE_CONCURRENCY": "0"}
    assert run(Wiring(environment), arguments=["clock", "show"]) == 1
    said = capsys.readouterr().err
    assert "BILLFOLD_PORT" in said
    assert "BILLFOLD_ENGINE_CONCURRENCY" in said


def test_an_unreachable_database_ends_a_command_with_a_next_step(capsys, tmp_path):
    environment = {"BILLFOLD_DATABASE_URL": f"postgresql://nobody@/none?host={tmp_path}", "PATH": os.environ["PATH"]}
    assert run(Wiring(environment), arguments=["clock", "show"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "does not answer" in said
    assert "BILLFOLD_DATABASE_URL" in said


def test_an_unusable_state_directory_ends_a_command_with_a_next_step(capsys, tmp_path):
    (tmp_path / "file").touch()
    environment = {"BILLFOLD_STATE_DIR": str(tmp_path / "file" / "state")}
    with socket() as first, socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in (first, second)]
    for words in (["clock", "show"], ["sandbox", "--port", ports[0], "--http-port", ports[1]]):
        assert run(Wiring(environment), arguments=words) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert "Not a directory" in said
        assert "BILLFOLD_STATE_DIR" in said


@pytest.mark.parametrize(("command", "folder"), [("bench", "benchmarks"), ("simulate", "simulation")])
def test_benchmarks_and_simulation_exist_only_in_a_checkout(command, folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, f"{folder}.cli", None)
    assert run(Wiring({}), arguments=[command]) == 1
    assert f"The {folder}" in (told := capsys.readouterr().err)
    assert "with the source checkout." in told


def test_an_interrupted_command_exits_without_a_traceback(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("billfold.wiring.cli.app.run", interrupted)
    monkeypatch.setattr(sys, "argv", ["billfold", "verify"])
    monkeypatch.setattr("os.umask", lambda _: None)  # that of this process is everybody's
    monkeypatch.setenv("PYTHONSAFEPATH", "")  # set by `main`, and put back after this test
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130


def test_a_list_wider_than_the_terminal_is_printed_row_by_row_without_truncation(monkeypatch):
    row = ("8f72b064-f013-8fbb-add9-dd64e9528fe6", "RECEIVING", "$1,234.56", "a name [of] somebody")
    for width, is_table in ((100, True), (60, False)):
        monkeypatch.setattr(cli_command.console, "width", width)
        with cli_command.console.capture() as shown:
            cli_command.console.print(cli_command.table("", ("entry", "way", "amount>", "customer"), [row]))
        lines = shown.get().splitlines()
        assert max(map(len, lines)) <= width
        assert any(row[0] in line and row[2] in line for line in lines) == is_table
        assert all(cell in shown.get() for cell in row)
