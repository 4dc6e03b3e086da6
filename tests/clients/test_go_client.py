"""The Go client is generated from both documents without a loss, and compiles."""

import os
import shutil
import subprocess

import msgspec
import pytest
from tests.http.test_openapi_generators import missing_in
from tests.reference.documents import DOCUMENTS
from tests.support.sandbox_process import SOURCE

SECONDS = 300


def test_the_go_client_has_every_operation_and_compiles():
    folder = SOURCE.parent / "clients/go"
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    for api, document in DOCUMENTS.items():
        (folder / api).mkdir(exist_ok=True)
        (folder / api / "openapi.json").write_bytes(msgspec.json.encode(document))
    fetch = ["go", "mod", "download"]
    if subprocess.run(fetch, cwd=folder, env=environment, check=False, capture_output=True, timeout=SECONDS).returncode:
        pytest.skip("go does not get what the Go client needs, or is too old")
    made = subprocess.run(
        ["sh", str(folder / "generate.sh")],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    for api, document in DOCUMENTS.items():
        assert missing_in(folder / api, ".go", msgspec.to_builtins(document)) == []
