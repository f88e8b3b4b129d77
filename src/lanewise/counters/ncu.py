"""Nsight Compute: is it there and allowed to look, run it, and read its two pages of a report."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lanewise.counters import metrics
from lanewise.errors import Error, Unfit

PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
MEMORY = ("LD", "ST", "ATOM", "RED", "UBLK", "UTMA")  # opcodes that touch memory begin so,
NOT_MEMORY = ("LDC", "LDGDEPBAR", "REDUX")  # and some that do not: constants, a barrier, a sum over a warp
PERMISSION = (
    "Nsight Compute may not read the GPU's counters (ERR_NVGPUCTRPERM). Run as root, or let every user read"
    " them: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reboot"
    " (https://developer.nvidia.com/ERR_NVGPUCTRPERM). Times can be measured without."
)


class ProfilerFailed(Error):
    """Nsight Compute gave no report."""


def find_ncu() -> str:
    """The path of ncu. Raises `Unfit` with where to get it."""
    if found := shutil.which("ncu"):
        return found
    for pattern in PLACES:
        if there := sorted(Path("/").glob(pattern.removeprefix("/"))):
            return str(there[-1])
    raise Unfit(
        "Nsight Compute (ncu) is not installed. It comes with the CUDA toolkit, or from"
        " https://developer.nvidia.com/nsight-compute; put ncu on the PATH. Times can be measured without."
    )


def version(ncu: str) -> str:
    """`"2025.3.1"`; '' if it does not say."""
    text = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Version (\d+\.\d+\.\d+)", text)
    return found[1] if found else ""


def profile(ncu: str, command: Sequence[str], names: Sequence[str], report: Path, seconds: float) -> str:
    """Run a command under the profiler into `report`, reading `names`, and give what both printed.

    Metrics that this GPU does not have are left out. Raises `Unfit` if the profiler may not or cannot look,
    `ProfilerFailed` otherwise.
    """
    wanted = list(names)
    while True:
        options = ["--clock-control", "none", "--profile-from-start", "off", "--metrics", ",".join(wanted)]
        output = _run([ncu, *options, "-f", "-o", str(report.with_suffix("")), *command], seconds)
        unknown = set(re.findall(r"Failed to find metric (\S+?)\"?\s", output)) & set(wanted)
        if not unknown:
            break
        wanted = [name for name in wanted if name not in unknown]
    if complaint := explained(output):
        raise Unfit(complaint)
    if not report.exists():
        raise ProfilerFailed(f"Nsight Compute wrote no report. Its last words: {output.strip()[-600:]}")
    return output


def explained(output: str) -> str:
    """What the profiler's complaint means and what to do; '' if it has none that we know."""
    if "ERR_NVGPUCTRPERM" in output:
        return PERMISSION
    if re.search(r"driver is not compatible|Driver version is too old", output, re.IGNORECASE):
        return (
            "This Nsight Compute is newer than the driver. Install the one of the driver's CUDA version, or a"
            " newer driver. Times can be measured without."
        )
    if re.search(r"not supported on|Device .* is not supported|unsupported GPU", output):
        return (
            "This Nsight Compute does not support the GPU: it needs compute capability 7.0 or newer, and a"
            " version at least as old as the GPU. Times can be measured without."
        )
    return ""


def _run(command: Sequence[str], seconds: float) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise ProfilerFailed(f"Nsight Compute did not end within {seconds:.0f} s.") from late
    return done.stdout + done.stderr


def page(ncu: str, report: Path, name: str) -> str:
    """A page of a report as CSV: "raw" or "source"."""
    options = ["--page", name, "--csv", "--print-units", "base"]
    return subprocess.run(
        [ncu, "--import", str(report), *options], capture_output=True, text=True, check=False
    ).stdout


def raw_rows(text: str, profiled: bool) -> list[dict[str, Any]]:
    """The launches of a raw page: the kernel's name under `"kernel"`, and our names with their values."""
    lines = [row for row in csv.reader(text.splitlines()) if row]
    start = next((i for i, row in enumerate(lines) if row[:1] == ["ID"]), len(lines))
    head, *body = lines[start:] or [[]]
    rows = []
    wanted = metrics.HARDWARE | (metrics.PROFILE if profiled else {})
    ours = {theirs: mine for mine, theirs in wanted.items()}
    for row in body:
        named = dict(zip(head, row, strict=False))
        if not named.get("ID", "").isdigit():
            continue  # the row of units
        numbers = {
            mine: metrics.value(theirs, named[theirs]) for theirs, mine in ours.items() if theirs in named
        }
        known = {name: number for name, number in numbers.items() if number is not None}
        rows.append({"kernel": named["Kernel Name"], "metrics": known})
    return rows


def source_rows(text: str) -> list[dict[str, list[int]]]:
    """The launches of a source page: what each memory opcode did.

    An opcode has five numbers: its instructions in the code, executions by warps, shared wavefronts, their
    ideal, and global sectors. The profiler leaves out a column that is all 0.
    """
    launches: list[dict[str, list[int]]] = []
    for row in _instructions(text):
        if not row:
            launches.append({})
            continue
        opcode, counted = row
        total = launches[-1].setdefault(opcode, [0] * 5)
        launches[-1][opcode] = [a + b for a, b in zip(total, (1, *counted), strict=True)]
    return launches


def _instructions(text: str) -> Iterator[tuple[str, list[int]] | None]:
    """None where a launch begins, then its memory instructions."""
    head: list[str] = []
    columns = [metrics.EXECUTED, *metrics.SOURCE.values()]
    for row in csv.reader(text.splitlines()):
        if row[:1] == ["Kernel Name"]:
            yield None
        elif "Source" in row and "Address" in row:
            head = row
        elif head and len(row) == len(head):
            named = dict(zip(head, row, strict=True))
            words = named["Source"].split()
            opcode = words[1] if words and words[0].startswith("@") else (words or [""])[0]
            if opcode.startswith(MEMORY) and not opcode.startswith(NOT_MEMORY):
                yield opcode, [_count(named, names) for names in columns]


def _count(named: dict[str, str], names: tuple[str, str]) -> int:
    """A column by either of its names."""
    text = named.get(names[1]) or named.get(names[0]) or "0"
    return round(float(text.replace(",", "") or 0))
