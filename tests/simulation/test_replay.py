"""Whole banks that live on seeds, each in a process of its own: `billfold simulate`."""

import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
SEEDS = [
    shlex.split(line, comments=True)
    for line in (ROOT / "simulation" / "seeds.txt").read_text().splitlines()
    if shlex.split(line, comments=True)
]
SMALL = ("--commands", "12", "--years", "0.005")
GENEROUS = """
from billfold.sandbox.rails.fedwire import SimulatedFedwire
pay = SimulatedFedwire.pay
SimulatedFedwire.pay = lambda fed, bank, name, to, cents, sender: pay(fed, bank, name, to, cents + 1, sender)
"""
"""A bank that books a cent more than arrived."""


@pytest.fixture(scope="module")
def simulate():
    """Run `billfold simulate` on a founded bank; return its status and what it printed."""
    words = [sys.executable, "-m", "tests.simulation.lives"]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        sent, answers = process.stdin, process.stdout
        assert sent is not None
        assert answers is not None

        def live(*options, planted=""):
            sent.write(msgspec.json.encode(([*map(str, options)], planted)).decode() + "\n")
            sent.flush()
            return msgspec.json.decode(answers.readline())

        yield live
        sent.close()
        assert process.wait(60) == 0


def test_a_seed_run_twice_holds_and_leaves_the_same_trace(simulate):
    status, told = simulate("--seed", 3, "--twice", *SMALL)
    assert status == 0, told
    assert "deaths" in told


@pytest.mark.parametrize("options", SEEDS, ids=" ".join)
def test_a_seed_that_found_a_defect_holds(simulate, options):
    status, told = simulate(*options)
    assert status == 0, told


def test_a_bank_that_books_a_cent_too_much_fails_with_one_command_that_replays_it(simulate):
    status, told = simulate("--seed", 1, "--faults", 0, *SMALL, planted=GENEROUS)
    assert status == 1, told
    assert "not booked" in told
    assert "replay: billfold simulate --seed 1" in told
