"""Third-party Java libraries that tests validate against."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "billfold-tests"


def jars_of(group, artifact, version, tmp_path_factory):
    """The folder of a library's jars, fetched once by Maven; without Java or Maven the test is skipped."""
    if not (shutil.which("java") and shutil.which("mvn")):
        pytest.skip("needs Java and Maven")
    folder = CACHE / f"{artifact}-{version}"
    if not folder.exists():
        draft = tmp_path_factory.mktemp(artifact)
        (draft / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>tests</groupId><artifactId>tests</artifactId><version>1</version><dependencies><dependency>"
            f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            "</dependency></dependencies></project>"
        )
        words = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        if subprocess.run(words, cwd=draft, check=False, capture_output=True, timeout=300).returncode:
            pytest.skip(f"Maven does not get {artifact}")
        CACHE.mkdir(parents=True, exist_ok=True)
        shutil.move(draft / "lib", folder)
    return folder
