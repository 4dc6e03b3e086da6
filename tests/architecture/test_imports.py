"""The layers hold, and nothing is exempt from them."""

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.architecture.pages import ROOT, section, text_of

CONTRACTS = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]


def test_every_contract_is_kept():
    linter = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in ran.stdout


def test_nothing_is_exempt_from_a_contract():
    assert not [contract["name"] for contract in CONTRACTS if contract.get("ignore_imports")]


def test_the_layer_map_shows_the_layers_that_are_checked():
    layers = CONTRACTS[0]["layers"]
    shown = section("ARCHITECTURE.md", "Layers")
    places = [shown.find(f"\n{layer}  ") for layer in layers]
    assert -1 not in places, dict(zip(layers, places, strict=True))
    assert places == sorted(places)
