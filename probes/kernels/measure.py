"""Run bundles on the GPU of this machine: counters of every instruction, and what compute-sanitizer says.

    python measure.py OUT --corpus corpus.zip --faults faults.zip

needs an NVIDIA GPU, ncu (with permission to read counters) and compute-sanitizer. Writes into OUT

    machine.json      GPU, driver, tools, date
    counters.json     launch -> rows of the profiler's source page: instruction and counters
    memory.zip        what the corpus left in memory: `<number of the launch>.<number of the allocation>`
    sanitizer.json    one entry a probe: what it did alone, and under its tool, with the raw output
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from launch import launches

HERE = Path(__file__).resolve().parent
PYTHON = [sys.executable, str(HERE / "launch.py")]
PARTS = 5  # profiler runs, so that one that fails does not take the others along
AT_ONCE = 8  # processes beside each other under the sanitizer
ALONE_SECONDS, TOOL_SECONDS = 12, 30  # a kernel that hangs is ended after this long
OPTIONS = {"racecheck": ["--racecheck-report", "all", "--print-level", "info"]}
COUNTERS = {
    "executed": "Instructions Executed",
    "wavefronts": "L1 Wavefronts Shared",
    "ideal": "L1 Wavefronts Shared Ideal",
    "sectors": "L2 Theoretical Sectors Global",
}


def profile(bundle: Path, out: Path, seconds: float) -> None:
    """Profile every launch of the bundle, part by part until the time is up."""
    counters: dict[str, list[list[Any]]] = {}
    deadline = time.monotonic() + seconds
    with ZipFile(bundle) as file:
        names = [launch["name"] for _, launch in launches(file)]
    with ZipFile(out / "memory.zip", "w", ZIP_DEFLATED) as memory:
        for part in range(PARTS):
            left, report, limit = out / "part.zip", out / "part.ncu-rep", deadline - time.monotonic()
            command = [*PYTHON, str(bundle), "--part", f"{part}/{PARTS}", "--memory", str(left)]
            ncu = ["ncu", "--clock-control", "none", "--section", "SourceCounters", "-f", "-o", str(report)]
            ended, output = run([*ncu, *command], max(1, limit))
            say(f"part {part}: {ended}, {limit:.0f} s were left; {output[-200:].strip()}")
            if ended != "0":
                with (out / "profiler.log").open("a") as log:
                    log.write(f"part {part}:\n{output[-4000:]}\n")
                continue
            page = run(["ncu", "--import", str(report), "--page", "source", "--csv"], 120)[1]
            counters |= dict(zip(names[part::PARTS], source_pages(page), strict=True))
            with ZipFile(left) as some:
                for name in some.namelist():
                    memory.writestr(name, some.read(name))
    for passing in ("part.zip", "part.ncu-rep"):
        (out / passing).unlink(missing_ok=True)
    (out / "counters.json").write_text(json.dumps({"columns": list(COUNTERS), "launches": counters}))


def source_pages(page: str) -> list[list[list[Any]]]:
    """The instructions of each launch with their counters; the profiler leaves out a column that is all 0."""
    pages: list[list[list[Any]]] = []
    head: list[str] = []
    for row in csv.reader(page.splitlines()):
        if row[:1] == ["Kernel Name"]:
            pages.append([])
        elif row[:1] == ["Address"]:
            head = row
        elif pages and len(row) == len(head):
            named = dict(zip(head, row, strict=True))
            counted = [int(named.get(column, "0").replace(",", "")) for column in COUNTERS.values()]
            pages[-1].append([" ".join(named["Source"].split()), *counted])
    return pages


def sanitize(bundle: Path, out: Path) -> None:
    """Launch each probe alone and under its tool, each time in a process of its own."""
    with ZipFile(bundle) as file:
        probes = [(launch["name"], launch["tool"]) for _, launch in launches(file)]

    def one(probe: tuple[str, str]) -> dict[str, Any]:
        name, tool = probe
        command = [*PYTHON, str(bundle), "--only", name]
        alone = run(command, ALONE_SECONDS)
        checker = ["compute-sanitizer", "--tool", tool, *OPTIONS.get(tool, [])]
        began = time.monotonic()
        under = run([*checker, *command], TOOL_SECONDS)
        return {
            "name": name,
            "tool": tool,
            "alone": alone[0],
            "alone_output": alone[1][-300:],
            "ended": under[0],
            "seconds": round(time.monotonic() - began, 1),
            "output": under[1][:6000] + (" [...] " + under[1][-600:] if len(under[1]) > 6000 else ""),
        }

    # Barriers that may hang come last: they take the time of their limit, and a share of the GPU.
    probes.sort(key=lambda probe: probe[1] == "synccheck")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(one, probes))
    (out / "sanitizer.json").write_text(json.dumps(results, indent=1))
    for result in results:
        last = (result["output"].strip().splitlines() or [""])[-1]
        say(f"{result['name'][:60]:60} {result['alone']:>5} {result['ended']:>5} {last[:70]}")


def run(command: list[str], seconds: float) -> tuple[str, str]:
    """Run a command with a time limit: its exit status, or "hangs"; and its output."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=seconds)
        return str(process.returncode), output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return "hangs", output


def machine() -> dict[str, str]:
    """What was measured, and with what."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = run(query, 60)[1].strip().splitlines()[0].split(", ")
    versions = {
        tool: next((line for line in run([tool, "--version"], 60)[1].splitlines() if "ersion" in line), "")
        for tool in ("ncu", "compute-sanitizer")
    }
    return {"gpu": gpu, "driver": driver, **versions, "date": time.strftime("%Y-%m-%d")}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Run bundles under the profiler and the sanitizer.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--faults", type=Path)
    parser.add_argument("--seconds", type=float, default=3600, help="for the profiler")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "machine.json").write_text(json.dumps(machine(), indent=1) + "\n")
    if arguments.faults:
        sanitize(arguments.faults, out)
    if arguments.corpus:
        profile(arguments.corpus, out, arguments.seconds)


if __name__ == "__main__":
    main()
