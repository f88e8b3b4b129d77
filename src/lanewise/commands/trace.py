"""`lanewise trace FILE.py:kernel`: a kernel from a file, traced and reported; status 1 for what must not be.

The file is read as text, not executed. `--import` executes it, for kernels of your own that use constants or
functions from elsewhere.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lanewise.commands.arguments import argument, shape
from lanewise.errors import Error
from lanewise.text import count
from lanewise.trace import Trace, functions_in, trace

LARGEST_FILE = 2_000_000  # bytes
SCHEMA = 1  # of the JSON report; it changes when a key changes its meaning


class NoKernel(Error):
    """A file, a name in it, or a choice of an option that there is not."""


def traced(
    where: str,
    grid: str,
    block: str,
    arguments: Iterable[str],
    *,
    dynamic_shared_bytes: int = 0,
    machine: str = "sm_90",
    lowering: str = "source",
    run_file: bool = False,
) -> Trace:
    """Trace the kernel that `FILE.py:NAME` names. Raises `NoKernel`, `InvalidArgument`, and as `trace`."""
    kernel = kernel_of(where, run_file=run_file)
    given = [argument(text, seed) for seed, text in enumerate(arguments)]
    return trace(
        kernel,
        shape("--grid", grid),
        shape("--block", block),
        *given,
        dynamic_shared_bytes=dynamic_shared_bytes,
        machine=machine,
        lowering=lowering,
    )


def kernel_of(where: str, *, run_file: bool = False) -> Any:
    """The function that `FILE.py:NAME` names; without a name, the only one with arguments in the file."""
    file, _, name = where.rpartition(":") if ".py:" in where else (where, "", "")
    path = Path(file)
    if not path.is_file():
        raise NoKernel(f"{file}: no such file. Write FILE.py:kernel.")
    if path.stat().st_size > LARGEST_FILE:
        raise NoKernel(f"{file}: {path.stat().st_size:,} bytes; at most {LARGEST_FILE:,} are read.")
    found = _executed(path) if run_file else _read(path)
    if name in found:
        return found[name]
    if not name and len(found) == 1:
        return next(iter(found.values()))
    listed = ", ".join(sorted(found)) or "none"
    raise NoKernel(f"{file}: {f'no function {name!r}' if name else 'name one function'}; it has {listed}.")


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(functions_in(path.read_text(encoding="utf-8"), str(path)))
    except UnicodeDecodeError as error:
        raise NoKernel(f"{path}: not UTF-8 text ({error.reason} at byte {error.start}).") from None


def _executed(path: Path) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise NoKernel(f"{path}: this is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise NoKernel(f"{path}: it cannot be executed: {type(error).__name__}: {error}") from error
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value) and (hasattr(value, "py_func") or getattr(value, "__module__", "") == path.stem)
    }


def as_json(report: Trace) -> dict[str, Any]:
    """A trace as data: sites, totals, hazards, warnings, what is not modelled."""
    fields = (
        "line", "column", "source", "space", "op", "array", "instruction", "modelled",
        "requests", "wavefronts", "ideal", "excess", "sectors", "bytes_requested", "bytes_moved",
    )  # fmt: skip
    return {
        "schema": SCHEMA,
        "kernel": report.kernel,
        "grid": list(report.grid),
        "block": list(report.block),
        "machine": report.machine,
        "lowering": report.lowering,
        "shared_bytes": report.shared_bytes,
        "sites": [{name: getattr(site, name) for name in fields} for site in report.sites],
        "totals": {"shared": _totals(report, "shared"), "global": _totals(report, "global_")},
        "hazards": [
            {"kind": one.kind, "severity": one.severity, "line": one.line, "message": one.message}
            for one in report.hazards
        ],
        "warnings": [{"line": line, "text": text} for line, text in report.warnings],
        "not_modelled": list(report.unmodelled),
    }


def _totals(report: Trace, space: str) -> dict[str, dict[str, int]]:
    fields = ("requests", "wavefronts", "ideal", "excess", "sectors", "bytes_requested", "bytes_moved")
    return {
        op: {name: getattr(getattr(getattr(report, space), op), name) for name in fields}
        for op in ("load", "store", "atomic", "async_copy")
    }


def as_html(report: Trace) -> str:
    """A trace as a page of its own."""
    style = ":root{color-scheme:light dark;font-family:sans-serif}"
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f"<title>Trace of {report.kernel}</title><style>{style}</style></head>"
        f"<body>{report._repr_html_()}</body></html>\n"
    )


FAILURES = ("excess", "sectors", "hazards", "float64", "not-modelled")


def failures_known(wanted: Iterable[str]) -> list[str]:
    """The words of `--fail-on`, which may be separated by commas. Raises `NoKernel` for one that is none."""
    words = [word.strip() for entry in wanted for word in entry.split(",") if word.strip()]
    if unknown := [word for word in words if word not in FAILURES]:
        raise NoKernel(f"--fail-on {unknown[0]!r}: choose among {', '.join(FAILURES)}.")
    return words


def failures(report: Trace, wanted: Iterable[str]) -> list[str]:
    """What `--fail-on` finds, one sentence each."""
    shared, memory = report.shared.total, report.global_.total
    found = {
        "excess": shared.excess and f"{count(shared.excess, 'excess wavefront')} in shared memory.",
        "sectors": memory.excess
        and f"{count(memory.excess, 'sector')} more than the requested bytes would fill.",
        "hazards": report.hazards
        and f"{count(len(report.hazards), 'hazard')}; the first: {report.hazards[0].message}",
        "float64": next((text for _, text in report.warnings if "float64" in text), ""),
        "not-modelled": report.unmodelled and report.unmodelled[0],
    }
    return [f"{word}: {found[word]}" for word in failures_known(wanted) if found[word]]
