import ast
import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from billfold.platform.settings.settings import Settings
from billfold.platform.settings.validation import variable_name

DEPLOY = Path(__file__).parents[2] / "deploy"


def checked_by(program, *words):
    """Run a third-party checker, if it is installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    run = subprocess.run([path, *map(str, words)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


def test_alert_rules_have_a_summary_and_a_severity():
    groups = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 10
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"].endswith((".", "?", "`")), rule["alert"]
    scraped = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    assert scraped["rule_files"] == ["alerts.yml"]
    units = " ".join(re.findall(r"billfold-\w+@\d+", (DEPLOY.parent / "docs/operate/deploy.md").read_text()))
    ports = {f"1{each}" for each in re.findall(r"serve@(\d+)", units)} | set(re.findall(r"worker@(\d+)", units))
    targets = [
        target for job in scraped["scrape_configs"] for each in job["static_configs"] for target in each["targets"]
    ]
    assert {each.rpartition(":")[2] for each in targets} == ports


def test_promtool_accepts_the_rules():
    checked_by("promtool", "check", "config", DEPLOY / "prometheus/prometheus.yml")


def test_panels_of_the_dashboard_do_not_overlap():
    panels = json.loads((DEPLOY / "grafana/billfold.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 20
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_systemd_accepts_the_units(tmp_path):
    units = []
    for unit in (DEPLOY / "systemd").glob("*.service"):
        units.append(tmp_path / unit.name.replace("@", "@8443"))
        units[-1].write_text(unit.read_text().replace("/opt/billfold/bin/billfold", "/bin/true"))
    assert len(units) == 2
    said = checked_by("systemd-analyze", "verify", *units)
    assert not [line for line in said.splitlines() if "billfold" in line]


def test_the_containers_define_every_setting_that_production_requires():
    composed = yaml.safe_load((DEPLOY / "container/compose.yaml").read_text())["services"]
    values = yaml.safe_load((DEPLOY / "helm/billfold/values.yaml").read_text())
    secrets = {"database_url", "seed", "encryption_key", "mail_url"}
    in_files = {name.removesuffix("_FILE") for name in composed["serve"]["environment"]}
    assert {variable_name(name) for name in secrets} <= in_files
    owner = "BILLFOLD_DATABASE_OWNER_URL_FILE"
    assert [name for name, service in composed.items() if owner in service["environment"]] == ["migrate"]
    lines = (DEPLOY / "container/billfold.env").read_text().splitlines()
    image = (DEPLOY / "container/Containerfile").read_text()
    of_image = dict(re.findall(r"(BILLFOLD_\w+)=(\S+)", image))
    own_secrets = {
        "BILLFOLD_DATABASE_URL": "postgresql://billfold@postgres/billfold",
        "BILLFOLD_SEED": "a seed of this bank",
        "BILLFOLD_ENCRYPTION_KEY": base64.b64encode(hashlib.sha256(b"key").digest()).decode(),
        "BILLFOLD_MAIL_URL": "smtp://mail",
    }
    composed_settings = dict(line.split("=", 1) for line in lines)
    subnet = yaml.safe_load((DEPLOY / "container/compose.yaml").read_text())["networks"]["default"]["ipam"]["config"][0]
    assert composed_settings["BILLFOLD_TRUSTED_PROXIES"] == subnet["subnet"]
    build = (DEPLOY.parent / "tools/build_wheel.sh").read_text()
    assert "--extra aws --extra fonts --extra otel" in build, "the chart takes credentials of AWS"
    for settings in (composed_settings, values["settings"]):
        assert Settings.from_env(of_image | settings | own_secrets).management_port == 9464


def test_helm_renders_the_chart(tmp_path):
    checked_by("helm", "template", DEPLOY / "helm/billfold", "--output-dir", tmp_path)
    made = [each for file in tmp_path.rglob("*.yaml") for each in yaml.safe_load_all(file.read_text())]
    kinds = sorted(each["kind"] for each in made)
    assert kinds == ["ConfigMap", "ConfigMap", "Deployment", "Deployment", "Job", "Service"]
    hooks = [each for each in made if "helm.sh/hook" in each["metadata"].get("annotations", {})]
    (job,) = (each for each in hooks if each["kind"] == "Job")
    needed = job["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"]
    assert {each["metadata"]["annotations"]["helm.sh/hook"] for each in hooks} == {"pre-install,pre-upgrade"}
    assert needed in {each["metadata"]["name"] for each in hooks}, "the job would wait for what comes after it"


def test_the_wheel_pins_the_tested_versions():
    run = subprocess.run([sys.executable, "tools/write_constraints.py", "--check"], cwd=DEPLOY.parent, check=False)
    assert run.returncode == 0


def test_an_image_changes_only_with_the_file_that_names_its_digest():
    base = re.findall(r"^ARG PYTHON_IMAGE=(.+)", (DEPLOY / "container/Containerfile").read_text(), re.MULTILINE)
    stages = re.findall(r"^FROM (\S+)", (DEPLOY / "container/Containerfile").read_text(), re.MULTILINE)
    services = yaml.safe_load((DEPLOY / "container/compose.yaml").read_text())["services"].values()
    named = [*base, *(each["image"] for each in services if each["image"] != "billfold")]
    assert set(stages) == {"$PYTHON_IMAGE"}
    assert [each for each in named if not re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", each)] == []
    assert len(named) == 2


def test_setup_and_image_install_no_package_without_a_hash():
    scripts = [DEPLOY.parent / "tools/setup.sh", DEPLOY / "container/Containerfile"]
    installs = re.findall(r"pip(?:\"?) (?:install|sync) [^&#\n]*", "".join(each.read_text() for each in scripts))
    from_index = [each for each in installs if "--no-deps" not in each]
    assert len(installs) == 6
    assert [each for each in from_index if "--require-hashes" not in each] == []
    own = [each for each in installs if each not in from_index]
    assert [each for each in own if "--no-build-isolation" not in each and "--no-index" not in each] == []
    uv, *hashes = (DEPLOY.parent / "tools/uv.txt").read_text().replace("\\\n", "").split("--hash=")
    assert re.search(r"^uv==[\d.]+ +$", uv, re.MULTILINE)
    assert hashes
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", each) for each in hashes)


def test_every_package_that_is_imported_is_declared():
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    declared = {canonical(each) for names in (project["dependencies"], *extras) for each in names}
    providers = packages_distributions()
    missing = {}
    for path in (DEPLOY.parent / "src/billfold").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for top in {each.partition(".")[0] for each in names} - sys.stdlib_module_names - {"billfold"}:
                if not declared & {canonical(each) for each in providers.get(top, [top])}:
                    missing[top] = path.name
    assert missing == {}


def canonical(requirement):
    """Return the normalized package name of a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()
