#!/usr/bin/env python3
"""Changes rules and workers in small ways, one at a time, and lists the changes that no test notices.

    .venv/bin/python tools/mutate.py --part payments/crypto [--seed 1] [--changes 40] [--minutes 30] [--tests PATH ...]
    .venv/bin/python tools/mutate.py --part payments/crypto --listed
    .venv/bin/python tools/mutate.py --plant NAME -- .venv/bin/billfold simulate --seed 1

A part is a folder or a file below src/billfold. Its tests run once unchanged, to learn which functions each reaches;
then each change runs the tests that reach its function, the nearest first, until one fails. Code is replaced in the
memory of a forked process: no file changes, and what a test runs in a process of its own counts as not reached.
--listed tries the changes of simulation/planted.toml instead of drawn ones. --plant writes one to its file, runs
the command, and restores the file; the exit status is 0 if the command failed.
"""

import argparse
import ast
import builtins
import gc
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from billfold.platform.database import embedded

ROOT = Path(__file__).resolve().parents[1]
SRC, TESTS = ROOT / "src/billfold", ROOT / "tests"
DECIDING = {"rules", "worker", "inbound", "reorgs", "approval"}
FLIPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip
SECONDS_A_CHANGE = 180
fork = multiprocessing.get_context("fork")


class Change(NamedTuple):
    """Text of a function in a file, from one byte to another, and what replaces it."""

    path: Path
    function: str
    line: int
    begins: int
    ends: int
    after: str

    def source(self) -> bytes:
        """Return the changed file."""
        source = self.path.read_bytes()
        return source[: self.begins] + self.after.encode() + source[self.ends :]

    def __str__(self) -> str:
        """Return the place, and the text before and after on one line."""
        before = self.path.read_bytes()[self.begins : self.ends].decode()
        return f"{self.path.relative_to(ROOT)}:{self.line}: {' '.join(before.split())}  ->  {self.after}"


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a body; what a message says and how it is logged decides nothing."""
    yield node
    if isinstance(node, ast.JoinedStr | ast.Raise) or ast.unparse(node).startswith(("log.", '"""')):
        return
    for child in ast.iter_child_nodes(node):
        yield from walk(child)


def changed(node: Any) -> str | None:
    """Return the text of a node with one small change, or None if it has none."""
    match node:
        case ast.Compare(ops=[one]) if type(one) in FLIPPED:
            return ast.unparse(ast.Compare(node.left, [FLIPPED[type(one)]()], node.comparators))
        case ast.BoolOp():
            return ast.unparse(ast.BoolOp(FLIPPED[type(node.op)](), node.values))
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return ast.unparse(ast.BinOp(node.left, FLIPPED[type(node.op)](), node.right))
        case ast.AugAssign(op=ast.Add() | ast.Sub()):
            return ast.unparse(ast.AugAssign(node.target, FLIPPED[type(node.op)](), node.value))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool()):
            return str(not node.value)
        case ast.Constant(value=int()):
            return str(node.value + 1)
        case ast.Raise() | ast.Expr(value=ast.Call() | ast.Await()):
            return "pass"
    return None


def changes(path: Path) -> Iterator[Change]:
    source = path.read_bytes()
    starts = [0]
    for each in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(each))
    for name, function in functions(ast.parse(source)):
        for node in (found for statement in function.body for found in walk(statement)):
            place, after = node, changed(node)
            if isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
                place, after = node.test, f"(not {ast.unparse(node.test)})"
            if after is not None:
                begins = starts[place.lineno - 1] + place.col_offset
                ends = starts[place.end_lineno - 1] + place.end_col_offset
                yield Change(path, name, place.lineno, begins, ends, after)


def listed() -> Iterator[tuple[str, Change]]:
    """Yield the changes that the simulation has to find, by name."""
    for each in tomllib.loads((ROOT / "simulation/planted.toml").read_text())["change"]:
        path = ROOT / each["file"]
        source = path.read_text()
        begins = source.index(each["before"])
        line = source.count("\n", 0, begins + len(each["before"]) - len(each["before"].lstrip())) + 1
        found = (name for name, node in functions(ast.parse(source)) if node.lineno <= line <= (node.end_lineno or 0))
        before, place = each["before"].encode(), len(source[:begins].encode())
        yield each["name"], Change(path, next(found, ""), line, place, place + len(before), each["after"])


# -- in a forked process ---------------------------------------------------------------


def replace_code(path: Path, source: bytes | ast.AST) -> None:
    """Give every function that was loaded from a file its code from this source."""
    codes: dict[str, CodeType] = {}
    left = [compile(source, str(path), "exec")]
    while left:
        for each in left.pop().co_consts:
            if isinstance(each, CodeType):
                codes[each.co_qualname] = each
                left.append(each)
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            code = codes.get(function.__code__.co_qualname)
            if code and code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code


def run_tests(arguments: list[str], plugin: object | None = None) -> int:
    os.environ["PYTEST_XDIST_WORKER"] = f"mutate{os.getpid()}"
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return pytest.main(["-q", "-p", "no:cacheprovider", *arguments], plugins=[plugin] if plugin else [])


class Reaching:
    """Sends the name of each test that passes unchanged, its seconds, and the functions that it reaches."""

    def __init__(self, pipe: Any, ends: float) -> None:
        self.pipe, self.ends, self.hits = pipe, ends, set[tuple[str, str]]()
        self.passed = True
        builtins._reached = self.hits.add  # type: ignore[attr-defined]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.hits.clear()
        self.passed, began = True, time.monotonic()
        result = yield
        if self.passed and self.hits:
            self.pipe.send((item.nodeid, time.monotonic() - began, set(self.hits)))
        if time.monotonic() > self.ends:
            item.session.shouldstop = "time is over"
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed &= not report.failed


def learn(pipe: Any, files: list[Path], tests: list[str], ends: float) -> None:
    for path in files:
        tree = ast.parse(path.read_bytes())
        for name, function in functions(tree):
            function.body[:0] = ast.parse(f"_reached(({str(path)!r}, {name!r}))").body
        replace_code(path, ast.fix_missing_locations(tree))
    run_tests(tests, Reaching(pipe, ends))
    pipe.send(None)


def try_change(change: Change, tests: list[str]) -> None:
    replace_code(change.path, change.source())
    sys.exit(int(run_tests(["-x", *tests])))


# -- the run ---------------------------------------------------------------------------


def find_reaching(files: list[Path], tests: list[str], ends: float) -> list[tuple[str, float, set[tuple[str, str]]]]:
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=learn, args=(there, files, tests, ends))
    process.start()
    there.close()
    found = []
    try:
        while (each := here.recv()) is not None:
            found.append(each)
    except EOFError:
        sys.exit("The tests did not end.")
    process.join()
    return found


def is_noticed(change: Change, tests: list[str]) -> bool:
    process = fork.Process(target=try_change, args=(change, tests))
    process.start()
    process.join(SECONDS_A_CHANGE)
    if process.exitcode is None:
        process.kill()  # an endless loop is noticed
        process.join()
    return process.exitcode != 0


def run(options: argparse.Namespace) -> int:
    ends = time.monotonic() + options.minutes * 60
    part = SRC / options.part
    files = [part] if part.is_file() else [p for p in sorted(part.rglob("*.py")) if DECIDING & {p.stem, *p.parts}]
    tests = options.tests or [str((TESTS / options.part).with_suffix(""))]
    if options.listed:
        drawn = [change for _, change in listed() if change.path.is_relative_to(part)]
    else:
        drawn = [change for path in files for change in changes(path)]
        drawn = random.Random(options.seed).sample(drawn, min(options.changes, len(drawn)))
    run_id = os.environ["PYTEST_XDIST_TESTRUNUID"] = f"mutate-{os.getpid()}"
    state = (
        next(path for path in (Path("/dev/shm"), Path(tempfile.gettempdir())) if path.is_dir())
        / f"billfold-test-{run_id}"
    )
    pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "--no-summary", "--no-header", "-qq", *tests])
    settings = {**embedded.THROWAWAY_SETTINGS, "max_connections": "200"}
    server = embedded.start(state / "state", settings=settings)
    survivors = tried = 0
    try:
        reaching = find_reaching(sorted({each.path for each in drawn}), tests, ends)
        for change in drawn:
            if time.monotonic() > ends:
                break
            near = [t for t in reaching if (str(change.path), change.function) in t[2]]
            near.sort(key=lambda t: (change.path.stem not in Path(t[0].split("::")[0]).stem, t[1]))
            tried += 1
            if not near or not is_noticed(change, [t[0] for t in near]):
                survivors += 1
                print(f"{change}  ({len(near)} tests reach it)", flush=True)
    finally:
        embedded.stop(server)
        shutil.rmtree(state, ignore_errors=True)
    print(f"{options.part}, seed {options.seed}: {tried} changes tried, {survivors} noticed by no test")
    return int(survivors * 20 > tried)


def plant(options: argparse.Namespace) -> int:
    known = dict(listed())
    if options.plant not in known:
        sys.exit("There is no such change. They are: " + ", ".join(known))
    change = known[options.plant]
    kept, after = change.path.read_bytes(), change.source()
    change.path.write_bytes(after)
    try:
        return int(subprocess.run(options.command, check=False).returncode == 0)
    finally:
        change.path.write_bytes(kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--tests", nargs="+")
    parser.add_argument("--listed", action="store_true")
    parser.add_argument("--plant")
    parser.add_argument("command", nargs="*")
    chosen = parser.parse_args()
    if bool(chosen.part) == bool(chosen.plant):
        parser.error("give --part or --plant")
    sys.exit(run(chosen) if chosen.part else plant(chosen))
