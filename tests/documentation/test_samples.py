"""The samples of every operation in the reference are valid programs in each language."""

import subprocess

import msgspec
from tests.node.samples import run_typescript


def test_every_code_sample_compiles(documentation):
    samples = [
        (block.title, sample)
        for page in documentation.site.pages
        for block in page.samples()
        for sample in block.variants
    ]
    by_language = {
        label: [each.code for title, each in samples if (title, each.label) == ("Request", label)]
        for label in ("curl", "Python", "TypeScript")
    }
    assert len({len(each) for each in by_language.values()}) == 1
    for code in by_language["Python"]:
        compile(code, "sample.py", "exec")
    shell = "\n".join(f"sample() {{\n{code}\n}}" for code in by_language["curl"])
    subprocess.run(["bash", "-n"], input=shell, text=True, check=True)
    assert run_typescript({}, parsed=by_language["TypeScript"]) == {}
    for title, each in samples:
        assert title == "Request" or msgspec.json.decode(each.code) is not None, title
