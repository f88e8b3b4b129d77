"""Large campaigns of generated kernels: `python -m tests.campaign --n 10000 --seed 0 --jobs 2`.

Every program runs in the tracer and in the oracle. A program on which they disagree is made smaller as long as they
still disagree, and is kept as `SEED.py` in the folder of failures, with the differences on top.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.differential import differences
from tests.generator import Program, generate, load
from tests.oracle import OracleError

ROOT = Path(__file__).resolve().parent.parent
_names = (f"campaign_{number}" for number in itertools.count())


def disagreement(program: Program) -> list[str]:
    """What tracer and oracle disagree about; an error that only the tracer raises is one."""
    with tempfile.TemporaryDirectory() as folder:
        name = next(_names)
        try:
            kernel = load(program.source, Path(folder), name)
            return differences(kernel, program.grid, program.block, program.arguments())
        finally:
            sys.modules.pop(name, None)


def check(seed: int, plain_every: int = 4) -> tuple[Program, list[str]]:
    """Run the program of a seed; every `plain_every`-th is a plain one."""
    program = generate(seed, plain=seed % plain_every == 0)
    return program, _failures(program)


def _failures(program: Program) -> list[str]:
    try:
        return disagreement(program)
    except OracleError as error:
        return [f"oracle: {error}"]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


# --- making a failure smaller -------------------------------------------------------------------------------------


def shrink(program: Program, seconds: float = 60.0) -> Program:
    """Leave out statements, one at a time, while the same kind of failure remains."""
    kind = _kind(_failures(program))
    deadline = time.monotonic() + seconds
    smaller = True
    while smaller and time.monotonic() < deadline:
        smaller = False
        for source in _without_one_statement(program.source):
            candidate = replace(program, source=source)
            if _kind(_failures(candidate)) == kind:
                program, smaller = candidate, True
                break
            if time.monotonic() > deadline:
                break
    return program


def _kind(failures: list[str]) -> str:
    return failures[0].split(" ")[0] if failures else ""


def _without_one_statement(source: str) -> Iterator[str]:
    """The source without one statement, or with a branch or loop replaced by its body; barriers stay."""
    n_places = sum(len(body) for body in _bodies(ast.parse(source)))
    for place, unwrap in itertools.product(reversed(range(n_places)), (False, True)):
        tree = ast.parse(source)
        for body in _bodies(tree):
            if place < len(body):
                break
            place -= len(body)
        statement = body[place]
        if "syncthreads" in ast.unparse(statement) or (unwrap and not isinstance(statement, ast.If)):
            continue
        body[place : place + 1] = statement.body if isinstance(statement, ast.If) and unwrap else []
        if not body:
            body.append(ast.Pass())
        smaller = ast.unparse(ast.fix_missing_locations(tree))
        if len(smaller) < len(source):
            yield smaller


def _bodies(tree: ast.Module) -> list[list[ast.stmt]]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    nodes: list[Any] = [node for function in functions for node in ast.walk(function)]
    return [
        body
        for node in nodes
        for name in ("body", "orelse")
        if isinstance(body := getattr(node, name, None), list) and body
    ]


# --- command line -------------------------------------------------------------------------------------------------


def campaign(n: int, first_seed: int, jobs: int, keep: Path) -> int:
    """Run `n` programs; return how many disagreed."""
    started, failed = time.monotonic(), 0
    with ProcessPoolExecutor(jobs) as pool:
        results = pool.map(check, range(first_seed, first_seed + n), chunksize=8)
        for done, (program, found) in enumerate(results, start=1):
            if found:
                failed += 1
                say(f"seed {program.seed}: {found[0]}")
                write_failure(program, found, keep)
            if done % 500 == 0 or done == n:
                say(f"{done} programs, {failed} disagreements, {time.monotonic() - started:.0f} s")
    return failed


def write_failure(program: Program, found: list[str], keep: Path) -> None:
    """Keep a failing program, made smaller, with its launch and what went wrong."""
    keep.mkdir(parents=True, exist_ok=True)
    small = shrink(program)
    notes = [
        f"seed={program.seed}, plain={program.plain}, grid={program.grid}, block={program.block}",
        *_failures(small),
    ]
    header = "".join(f"# {line}\n" for note in notes for line in note.splitlines())
    (keep / f"{program.seed}.py").write_text(header + small.source + "\n")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="number of programs")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--keep", type=Path, default=ROOT / "_build" / "campaign", help="folder for failing programs"
    )
    given = parser.parse_args(arguments)
    return 1 if campaign(given.n, given.seed, given.jobs, given.keep) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
