#!/usr/bin/env python3
"""Changes the bank's code in small ways, one at a time, and lists the changes that no test notices.

    .venv/bin/python tools/mutate.py --part payments/crypto/withdrawals/rules.py
    .venv/bin/python tools/mutate.py --plant NAME [-- COMMAND]

A part is a file below src/billfold, or a folder: then its rules, workers and readers of files. Changes are drawn from
--seed: a comparison, and/or, a sign, a constant, a condition turned round, a dropped check or call. The tests of the
part run once unchanged, to learn which functions each reaches; then each change runs the tests that reach its function,
the nearest first, until one fails. First all changes are tried on tests in memory, then those left on tests with a
database. Code is replaced in the memory of forked processes: no file changes, and what a test runs in a process of its
own is not changed. The exit status is 0 if at most one change in twenty is noticed by no test.

--plant makes a change listed in simulation/planted.toml in a copy of src, and runs a command with that copy: its
tests, or any other (".venv/bin/billfold simulate --seed 1"). "all" makes each in turn. With --seeds 5, and for a
change without tests, it is the simulation: with the seed of the list, then from seed 1 to the first that fails, or to
5. The exit status is 0 if every command failed.
"""

import argparse
import ast
import builtins
import gc
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
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
SECONDS_OF_SILENCE = 120  # of one unchanged test
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
    if ast.unparse(node).startswith(("log.", '"""')):
        return
    yield node
    if isinstance(node, ast.JoinedStr | ast.Raise):
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


def planted() -> Iterator[tuple[str, tuple[Change, list[str], int]]]:
    """Yield the listed changes by name, each with the tests, if any, and the seed that have to notice it."""
    for each in tomllib.loads((ROOT / "simulation/planted.toml").read_text())["change"]:
        path = ROOT / each["file"]
        source = path.read_text()
        begins = source.index(each["before"])
        line = source.count("\n", 0, begins + len(each["before"]) - len(each["before"].lstrip())) + 1
        found = (name for name, node in functions(ast.parse(source)) if node.lineno <= line <= (node.end_lineno or 0))
        before, place = each["before"].encode(), len(source[:begins].encode())
        change = Change(path, next(found, ""), line, place, place + len(before), each["after"])
        yield each["name"], (change, each.get("tests", "").split(), each["seed"])


# -- in a forked process ---------------------------------------------------------------


def replace_code(path: Path, source: bytes | ast.AST) -> None:
    """Give every function that was loaded from a file its code from this source."""
    codes: dict[CodeType, CodeType] = {}
    left = [(compile(path.read_bytes(), str(path), "exec"), compile(source, str(path), "exec"))]
    while left:
        inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in left.pop()]
        pairs = list(zip(*inner, strict=False))
        codes.update(pairs)
        left += pairs
    for function in gc.get_objects():
        code = codes.get(function.__code__) if isinstance(function, FunctionType) else None
        if code and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code


class Tries:
    """Tries changes in place of a session's tests, each in a fork of this process, until time is over."""

    def __init__(self, drawn: list[Change], ends: float) -> None:
        self.left, self.untried, self.ends = drawn, list[Change](), ends
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:  # to collect
            return None
        by_database: dict[bool, list[pytest.Item]] = {False: [], True: []}
        for item in session.items:
            by_database["pg_server" in getattr(item, "fixturenames", ())].append(item)
        with test_server() if by_database[True] else nullcontext():
            for has_database, items in by_database.items():
                if items and time.monotonic() > self.ends:
                    self.untried, self.left = [*self.untried, *self.left], []
                elif items and self.left:
                    self.try_on(items, "tests with a database" if has_database else "tests in memory")
        return True

    def try_on(self, items: list[pytest.Item], kind: str) -> None:
        now = time.monotonic()
        print(f"{len(items)} {kind} run unchanged.", flush=True)
        reaching = self.find_reaching(items, now + (self.ends - now) / 2)
        drawn, self.left = self.left, []
        for number, change in enumerate(drawn):
            near = [t for t in reaching if (str(change.path), change.function) in t[2]]
            near.sort(key=lambda t: (change.path.stem not in Path(items[t[0]].nodeid.split("::")[0]).stem, t[1]))
            began, limit = time.monotonic(), 20 + 10 * sum(seconds for _, seconds, _ in near)
            noticed = bool(near) and self.is_noticed(change, [items[t[0]] for t in near], limit)
            if time.monotonic() > self.ends:
                self.untried = drawn[number:]
                break
            verdict = "noticed" if noticed else f"passed by {len(near)} {kind}"
            seconds = time.monotonic() - began
            print(f"{number + 1} of {len(drawn)}, {seconds:.1f} s, {verdict}: {change}", flush=True)
            if not noticed:
                self.left.append(change)

    def find_reaching(self, items: list[pytest.Item], ends: float) -> list[tuple[int, float, set[tuple[str, str]]]]:
        here, there = fork.Pipe(duplex=False)
        with forked(self.learn, there, items):
            there.close()
            found, name = [], items[0].nodeid
            with suppress(EOFError):
                while here.poll(max(0, min(SECONDS_OF_SILENCE, ends - time.monotonic()))):
                    number, seconds, hits = here.recv()
                    if hits:
                        found.append((number, seconds, hits))
                    if number + 1 == len(items):
                        return found
                    name = items[number + 1].nodeid
        print(f"Stopped in {name}: only the tests before it are used.", flush=True)
        return found

    def learn(self, pipe: Any, items: list[pytest.Item]) -> None:
        hits = set[tuple[str, str]]()
        builtins._reached = hits.add  # type: ignore[attr-defined]
        for path in {change.path for change in self.left}:
            tree = ast.parse(path.read_bytes())
            for name, function in functions(tree):
                function.body[:0] = ast.parse(f"_reached(({str(path)!r}, {name!r}))").body
            replace_code(path, ast.fix_missing_locations(tree))
        for number, seconds in enumerate(self.run_tests(items)):
            pipe.send((number, seconds, set() if self.failed else hits))
            hits.clear()
            self.failed = False

    def is_noticed(self, change: Change, items: list[pytest.Item], seconds: float) -> bool:
        with forked(self.try_change, change, items) as process:
            process.join(min(seconds, self.ends - time.monotonic()))
            return process.exitcode != 0  # an endless loop is noticed

    def try_change(self, change: Change, items: list[pytest.Item]) -> None:
        replace_code(change.path, change.source())
        for _ in self.run_tests(items):
            if self.failed:
                os._exit(1)

    def run_tests(self, items: list[pytest.Item]) -> Iterator[float]:
        os.environ["PYTEST_XDIST_WORKER"] = f"mutate{os.getpid()}"
        nowhere = os.open(os.devnull, os.O_RDWR)
        for each in range(3):
            os.dup2(nowhere, each)
        for item, following in zip(items, [*items[1:], None], strict=True):
            began = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield time.monotonic() - began


# -- the run ---------------------------------------------------------------------------


@contextmanager
def forked(target: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Run a function in a fork of this process, and stop it in the end with all that it started."""

    def in_a_group() -> None:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        target(*arguments)

    process = fork.Process(target=in_a_group)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def test_server() -> Iterator[None]:
    """Keep the database server of the tests running, which each fork would start."""
    memory = Path("/dev/shm")
    run = os.environ["PYTEST_XDIST_TESTRUNUID"] = f"mutate-{os.getpid()}"
    folder = (memory if memory.is_dir() else Path(tempfile.gettempdir())) / f"billfold-test-{run}"
    server = embedded.start(folder / "state", settings={**embedded.THROWAWAY_SETTINGS, "max_connections": "200"})
    try:
        yield
    finally:
        embedded.stop(server)
        shutil.rmtree(folder, ignore_errors=True)


def tests_of(part: Path) -> list[str]:
    """Return the folder of tests that mirrors a part most closely, and the files in the folders above it."""
    folder = TESTS / part.relative_to(SRC)
    while not folder.is_dir():
        folder = folder.parent
    above = [path for path in folder.parents if path.is_relative_to(TESTS) and path != TESTS]
    return [str(folder), *(str(file) for path in above for file in sorted(path.glob("test_*.py")))]


def run(options: argparse.Namespace) -> int:
    part = SRC / options.part
    files = [part] if part.is_file() else [p for p in sorted(part.rglob("*.py")) if DECIDING & {p.stem, *p.parts}]
    drawn = [change for path in files for change in changes(path)]
    drawn = random.Random(options.seed).sample(drawn, min(options.changes, len(drawn)))
    tries = Tries(drawn, time.monotonic() + options.minutes * 60)
    plain = ["-qq", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--no-summary"]
    if (status := pytest.main([*plain, *(options.tests or tests_of(part))], plugins=[tries])) > 1:
        return int(status)
    for change in tries.left:
        print(f"not noticed: {change}")
    if tries.untried:
        print(f"The time was over before {len(tries.untried)} changes were tried on all tests.")
    tried = len(drawn) - len(tries.untried)
    print(f"{options.part}, seed {options.seed}: {tried} changes tried, {len(tries.left)} noticed by no test")
    return int(len(tries.left) * 20 > tried)


def plant(options: argparse.Namespace) -> int:
    known = dict(planted())
    if options.plant not in {"all", *known}:
        sys.exit("There is no such change. They are: " + ", ".join(known))
    passed = []
    for name in known if options.plant == "all" else [options.plant]:
        change, tests, seed = known[name]
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
            (copy / change.path.relative_to(ROOT / "src")).write_bytes(change.source())
            commands = [options.command or [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *tests]]
            if options.seeds or not (options.command or tests):
                simulate = [sys.executable, "-m", "billfold", "simulate", "--first", "--seeds"]
                commands = [[*simulate, each] for each in (f"{seed}-{seed}", f"1-{options.seeds or seed}")]
            where = {**os.environ, "PYTHONPATH": str(copy)}
            output = subprocess.PIPE if options.seeds else None
            for command in commands:
                told = subprocess.run(command, check=False, env=where, cwd=ROOT, stdout=output, text=True)
                if told.returncode:
                    break
        after = f" by {command[-1]}\n{told.stdout}" if options.seeds else ""
        print(f"{name}: {'NOT noticed' if told.returncode == 0 else 'noticed'}{after}", flush=True)
        passed += [name] if told.returncode == 0 else []
    return int(bool(passed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", help="change this file or folder below src/billfold, and run its tests")
    parser.add_argument("--seed", type=int, default=1, help="draw the changes from this number (1)")
    parser.add_argument("--changes", type=int, default=40, help="draw at most so many (40)")
    parser.add_argument("--minutes", type=float, default=30, help="end after this time, whatever runs (30)")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="use these tests instead of those near the part")
    parser.add_argument("--plant", metavar="NAME", help='make a listed change, or "all" in turn, in a copy')
    parser.add_argument("--seeds", type=int, help="run the simulation with so many seeds at most instead of tests")
    parser.add_argument("command", nargs="*", help="what runs with the copy instead of the tests of the list")
    options = parser.parse_args()
    if bool(options.part) == bool(options.plant):
        parser.error("give --part or --plant")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that all that was started is stopped
    try:
        return run(options) if options.part else plant(options)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
