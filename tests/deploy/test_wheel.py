"""The wheel as a bank installs it: in an empty environment it has every package that it imports, and its services run.

WHEELS is a folder in which `make wheel` has built what is to be tested. WHEEL_SECONDS is how long
each service runs once it is ready; the standing tests keep it short.
"""

import base64
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.support.databases import as_application
from tests.support.environments import UV_PATH, install, new_environment
from tests.support.sandbox_process import free_ports
from typing_extensions import override

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "src/billfold/constraints.txt"
IMAGE = "image"
START_SECONDS, STOP_SECONDS = 90, 30
RUN_SECONDS = float(os.environ.get("WHEEL_SECONDS", "1"))
LOCAL_CHAIN = {"billfold.sandbox.chain.local_chain"}
IMPORT_ALL = """
import importlib, pkgutil, sys, billfold
for name in sys.argv[1:] or [each.name for each in pkgutil.walk_packages(billfold.__path__, "billfold.")]:
    if not name.endswith("__main__"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(name, error.name)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The products of `make wheel`: the wheels of bank and client, and the requirements of the image."""
    if built := os.environ.get("WHEELS"):
        folder = Path(built)
    else:
        folder = tmp_path_factory.mktemp("wheel")
        path = os.pathsep.join((str(Path(sys.executable).parent), UV_PATH))
        build = ["sh", "tools/build_wheel.sh", str(folder)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True, env=os.environ | {"PATH": path})
    (made,) = folder.glob("billfold-*.whl")
    return made, folder / "requirements.txt"


@pytest.fixture(scope="module")
def plain(wheel, tmp_path_factory):
    """An environment with only the compiled wheel, without extras."""
    file, _ = wheel
    python = new_environment(tmp_path_factory.mktemp("venv"))
    install(python, "--compile-bytecode", "--constraint", CONSTRAINTS, *packages(file))
    return python.parents[1]


@pytest.fixture(scope="module", params=["", "sandbox,mcp", IMAGE], ids=lambda extras: extras or "no_extras")
def installed(request, wheel, plain, tmp_path_factory):
    """The programs of an environment with only the wheel and an extra, or with the content of the image.

    Everything but the local chain imports with no extra, so with any of the others too.
    """
    file, requirements = wheel
    if not request.param:
        yield request.param, plain / "bin"
        return
    python = new_environment(tmp_path_factory.mktemp("venv"))
    if request.param == IMAGE:
        install(python, "--require-hashes", "-r", requirements)
        install(python, "--no-index", "--no-deps", *file.parent.glob("*.whl"))
        lend_bytecode(plain / "lib", python.parents[1] / "lib")
    else:
        # Compiled wheels are shared.
        shutil.rmtree(python.parents[1] / "lib")
        shutil.copytree(plain / "lib", python.parents[1] / "lib", copy_function=os.link, symlinks=True)
        program = python.parent / "billfold"
        program.write_text((plain / "bin/billfold").read_text().replace(str(plain), str(python.parents[1])))
        program.chmod(0o755)
        install(python, "--constraint", CONSTRAINTS, *packages(file, f"[{request.param}]"))
    yield request.param, python.parent
    shutil.rmtree(python.parents[1])


def lend_bytecode(origin, to):
    """Have what was compiled for one environment in another; Python compiles what is of other sources itself."""
    for compiled in origin.rglob("__pycache__"):
        there = to / compiled.relative_to(origin)
        if there.parent.is_dir() and not there.exists():
            shutil.copytree(compiled, there, copy_function=os.link)


def packages(wheel, extras=""):
    """Return the requirements of both wheels by file, whose changes an installer's cache sees."""
    (client,) = wheel.parent.glob("billfold_client-*.whl")
    return f"billfold{extras} @ {wheel.as_uri()}", f"billfold-client @ {client.as_uri()}"


def test_every_module_of_the_wheel_imports_when_only_its_extras_are_installed(installed, tmp_path):
    extras, programs = installed
    has_chain = extras.startswith("sandbox")  # all other modules import without extras, too
    words = [programs / "python", "-P", "-c", IMPORT_ALL, *(LOCAL_CHAIN if has_chain else ())]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    failed = dict(line.split() for line in run.stdout.splitlines())
    assert failed == ({} if has_chain else dict.fromkeys(LOCAL_CHAIN, "eth_tester"))


@pytest.mark.parametrize("installed", ["", IMAGE], ids=["no_extras", IMAGE], indirect=True)
def test_serve_and_worker_of_the_wheel_run_with_no_extras_and_as_in_the_image(installed, database_dsn, tmp_path):
    extras, programs = installed
    environ = settings_of_a_bank(tmp_path, database_dsn)
    subprocess.run([programs / "billfold", "migrate", "up"], env=environ, check=True, capture_output=True, cwd=tmp_path)
    del environ["BILLFOLD_DATABASE_OWNER_URL"]
    with collector_of_traces() as (url, received):
        if extras == IMAGE:
            environ |= {"BILLFOLD_TRACES": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": url}
        run_services(programs, environ, tmp_path)
    assert set(received) == ({"/v1/traces"} if extras == IMAGE else set())
    for name in ("serve", "worker"):
        log = (tmp_path / f"{name}.log").read_text()
        assert re.findall(r"Traceback|\w+Error|restarting|\b(?:error|critical)\b", log) == [], log


def run_services(programs, environ, folder):
    """Run both services until they are ready and a little longer; they must stop on their own."""
    with ExitStack() as stack:
        services = {}
        for name in ("serve", "worker"):
            (port,) = free_ports(1)
            out = stack.enter_context((folder / f"{name}.log").open("w"))
            own = environ | {"BILLFOLD_MANAGEMENT_PORT": str(port)}
            process = subprocess.Popen([programs / "billfold", name], env=own, stdout=out, stderr=out, cwd=folder)
            stack.callback(process.wait)
            stack.callback(process.kill)
            services[port] = process
        deadline = time.monotonic() + START_SECONDS
        while {readiness(port) for port in services} != {200}:
            said = "".join(each.read_text() for each in folder.glob("*.log"))
            assert {each.poll() for each in services.values()} == {None}, said
            assert time.monotonic() < deadline, said
            time.sleep(0.2)
        time.sleep(RUN_SECONDS)
        assert {readiness(port) for port in services} == {200}
        for each in services.values():
            each.send_signal(signal.SIGTERM)
        assert {each.wait(STOP_SECONDS) for each in services.values()} == {0}


@contextmanager
def collector_of_traces():
    """Listen like an OpenTelemetry collector; yield the address and the received paths."""
    received = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            received.append(self.path)
            self.send_response(200)
            self.end_headers()

        @override
        def log_message(self, format, *_words):
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()


def settings_of_a_bank(folder, dsn):
    """Return the settings of a production bank behind a proxy that terminates TLS."""
    port, http_port = free_ports(2)
    return {
        "PATH": os.environ["PATH"],
        "BILLFOLD_ENVIRONMENT": "production",
        "BILLFOLD_STATE_DIR": str(folder / "state"),
        "BILLFOLD_DATABASE_URL": as_application(dsn),
        "BILLFOLD_DATABASE_OWNER_URL": dsn,
        "BILLFOLD_SEED": "a seed that no other bank has",
        "BILLFOLD_ENCRYPTION_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "BILLFOLD_MAIL_URL": "smtps://mail.bank.example",
        "BILLFOLD_MAIL_FROM": "no-reply@bank.example",
        "BILLFOLD_PORT": str(port),
        "BILLFOLD_HTTP_PORT": str(http_port),
        "BILLFOLD_BEHIND_PROXY": "yes",
        "BILLFOLD_TRUSTED_PROXIES": "127.0.0.1",
        "BILLFOLD_DOMAIN": "bank.example",
        "BILLFOLD_BANK_NAME": "First Bank of Bills",
        "BILLFOLD_BANK_ROUTING_NUMBER": "021000021",
        "BILLFOLD_BANK_BIC": "FBOBUS33",
        "BILLFOLD_BANK_PHONE": "+1 212 555 0100",
        "BILLFOLD_BANK_ADDRESS": "1 Bill Street, New York, NY 10004, US",
        "BILLFOLD_CUSTODIAN": "none",
        "BILLFOLD_LINKING_PROVIDER": "none",
        "BILLFOLD_IDENTITY_CHECK": "none",
    }


def readiness(port):
    with suppress(OSError):
        try:
            return urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status
        except HTTPError as error:
            return error.code
    return None
