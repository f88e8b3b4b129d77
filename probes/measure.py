"""Read hardware counters for one warp instruction at a time, on the GPU of this machine.

    python measure.py OUT            needs nvcc, ncu (with permission to read counters) and an NVIDIA GPU

Writes into OUT one CSV for each group of instructions: instruction, active_mask, byte_offsets, source_offsets
(of cp.async alone), then every counter as the profiler gave it; `machine.json` (GPU, driver, versions, date,
limits), `timing.jsonl` and `misaligned.jsonl`. Nothing is subtracted or fitted: the `none` rows say what a
launch counts by itself, and the rows with mask 0 what an instruction counts that no lane takes part in.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patterns import Side, patterns, tile_fills

HERE = Path(__file__).parent
BATCH = 200  # launches of one profiler run
EMPTY = "none 00000000" + " 0" * 32

WIDTHS = ("b8", "b16", "b32", "b64", "b128")
COPIES = ["cp.async.ca.4", "cp.async.ca.8", "cp.async.ca.16", "cp.async.cg.16"]
MATRICES = [f"ldmatrix.{form}" for form in ("x1", "x2", "x4", "x1.trans", "x2.trans", "x4.trans")]
STORE_MATRICES = [name.replace("ld", "st", 1) for name in MATRICES]
SHARED_ATOMICS = [f"red.shared.add.{form}" for form in ("u32", "one", "f32")]
SHARED_ATOMICS += [f"atom.shared.{form}" for form in ("add.u32", "exch.b32", "cas.b32")]
GLOBAL_ATOMICS = ["red.global.add.u32", "atom.global.add.u32"]

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"


@dataclass(frozen=True)
class Group:
    """Patterns that are read with the same counters."""

    name: str
    counters: tuple[str, ...]
    lines: list[str]


def groups(scale: float, seed: int) -> list[Group]:
    """All that is measured; `scale` stretches the number of patterns of each instruction."""

    def lines(names: list[str], count: int, side: Side = "shared") -> list[str]:
        n = max(4, round(scale * count))
        return [line for name in names for line in patterns(name, n, seed, side)]

    def counted(space: str, *ops: str) -> list[str]:
        return [f"{op}.{space}.{width}" for op in ops for width in WIDTHS]

    def traffic(*ops: str) -> tuple[str, ...]:
        both = ("requests", "sectors")
        return tuple(f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}" for op in ops for what in both)

    return [
        Group(
            "async",
            (WAVEFRONTS, f"{CONFLICTS}_op_ldgsts", *traffic("ld")),
            lines(COPIES, 60) + lines(COPIES, 45, "global") + lines(COPIES, 45, "both"),
        ),
        Group(
            "tiles",
            (WAVEFRONTS, f"{CONFLICTS}_op_ldgsts", *traffic("ld")),
            [line for name in COPIES for line in tile_fills(name)],
        ),
        Group("global", traffic("ld", "st"), lines(counted("global", "ld", "st"), 70)),
        Group("global_atomics", traffic("red", "atom"), lines(GLOBAL_ATOMICS, 120)),
        Group(
            "source_page",
            ("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"),
            lines(["ld.shared.b64", "ld.shared.b128"], 35)
            + lines(SHARED_ATOMICS, 8)
            + lines(["cp.async.cg.16"], 60)
            + lines(["cp.async.cg.16"], 40, "both")
            + tile_fills("cp.async.cg.16"),
        ),
        Group(
            "shared",
            (WAVEFRONTS, CONFLICTS),
            lines(counted("shared", "ld", "st"), 60)
            + lines(MATRICES, 40)
            + lines(STORE_MATRICES, 60)
            + lines(SHARED_ATOMICS, 70),
        ),
    ]


def known_counters(out: Path) -> set[str]:
    """Counters that this GPU has; the full list is kept beside the results."""
    listing = run("ncu", "--query-metrics").stdout
    (out / "counters.txt").write_text(listing)
    return {words[0] for row in listing.splitlines() if (words := row.split())}


def read_counters(access: Path, group: Group, counters: list[str], lines: list[str]) -> list[dict[str, str]]:
    """Launch the patterns under the profiler: one row a launch, counter -> value."""
    with tempfile.TemporaryDirectory() as folder:
        pattern_file, log = Path(folder) / "patterns", Path(folder) / "log"
        pattern_file.write_text("\n".join(lines) + "\n")
        # Source counters (memory_...) have no roll-up; the others are summed over the chip.
        metrics = ",".join(name if name.startswith("memory_") else f"{name}.sum" for name in counters)
        # Flushing the caches between launches takes time and did not change any rule (cp.async, both ways).
        options = "--clock-control none --cache-control none --csv --page raw --print-units base"
        run("ncu", *options.split(), "--metrics", metrics, "--log-file", log, access, pattern_file)
        table = log.read_text().splitlines()
    start = next((i for i, row in enumerate(table) if row.startswith('"ID"')), len(table))
    rows = [row for row in csv.DictReader(table[start:]) if row["ID"].isdigit()]
    if len(rows) != len(lines):
        head = "\n".join(table[:20])
        raise RuntimeError(f"{len(lines)} launches, but {len(rows)} rows of counters:\n{head}")
    return rows


def usable_counters(access: Path, group: Group, known: set[str]) -> list[str]:
    """The group's counters that the profiler accepts; source counters are in no list, so they are tried."""
    counters = [name for name in group.counters if name in known or name.startswith("memory_")]
    try:
        read_counters(access, group, counters, [EMPTY])
    except RuntimeError as error:
        say(f"  {str(error)[:600]}\n  trying the counters one by one")
        return [name for name in counters if accepts(access, group, name)]
    return counters


def accepts(access: Path, group: Group, counter: str) -> bool:
    try:
        read_counters(access, group, [counter], [EMPTY])
    except RuntimeError:
        return False
    return True


def measure(access: Path, group: Group, known: set[str], out: Path, deadline: float) -> None:
    """Measure one group in batches, mixed so that a run cut short has some of each instruction."""
    counters = usable_counters(access, group, known)
    lines = list(group.lines)
    random.Random(group.name).shuffle(lines)
    lines.insert(0, EMPTY)
    say(f"{group.name}: {len(lines)} launches, without {[c for c in group.counters if c not in counters]}")
    with (out / f"{group.name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["instruction", "active_mask", "byte_offsets", "source_offsets", *counters])
        for start in range(0, len(lines), BATCH):
            began = time.monotonic()
            if began > deadline:
                say(f"  out of time after {start} of {len(lines)}")
                return
            batch = lines[start : start + BATCH]
            for line, row in zip(batch, read_counters(access, group, counters, batch), strict=True):
                name, mask, *numbers = line.split()
                values = [value_of(row, counter) for counter in counters]
                writer.writerow([name, mask, " ".join(numbers[:32]), " ".join(numbers[32:]), *values])
            file.flush()
            say(f"  {start + len(batch)} in {time.monotonic() - began:.1f} s")


def value_of(row: dict[str, str], counter: str) -> str:
    value = row.get(f"{counter}.sum", row.get(counter, ""))
    return value.replace(",", "").removesuffix(".00").removesuffix(".0")


def run(*command: object, check: bool = True, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    if check and done.returncode:
        output = (done.stdout + done.stderr)[-1500:]
        raise RuntimeError(f"{' '.join(words)[:300]} failed ({done.returncode}):\n{output}")
    return done


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def build(folder: Path) -> dict[str, Path]:
    """Compile the four programs for the GPU of this machine, side by side."""

    def compile_one(name: str) -> Path:
        run("nvcc", "-O2", "-arch=native", "-std=c++17", "-o", folder / name, HERE / f"{name}.cu")
        return folder / name

    names = ("access", "timing", "misaligned", "limits")
    with ThreadPoolExecutor() as pool:
        return dict(zip(names, pool.map(compile_one, names), strict=True))


def machine(limits: Path) -> dict[str, object]:
    """What was measured, and with what."""
    query = ["name", "driver_version", "clocks.max.sm", "clocks.max.mem"]
    answer = run("nvidia-smi", f"--query-gpu={','.join(query)}", "--format=csv,noheader").stdout
    return {
        **dict(zip(query, answer.splitlines()[0].split(", "), strict=True)),
        "nvcc": run("nvcc", "--version").stdout.strip().splitlines()[-1],
        "ncu": run("ncu", "--version").stdout.strip().splitlines()[-1],
        "date": time.strftime("%Y-%m-%d"),
        "limits": json.loads(run(limits).stdout),
    }


def misaligned_cases(program: Path) -> list[str]:
    """Try misaligned accesses, each in a process of its own; shift 0 is the control."""
    shifts = {
        "ld.shared.b16": (1,),
        "ld.shared.b32": (1, 2),
        "ld.shared.b64": (4, 2),
        "ld.shared.b128": (8, 4, 1),
        "st.shared.b128": (8, 4),
        "ldmatrix.x4": (8, 4, 2, 1),
        "stmatrix.x4": (8, 4),
        "ld.global.b32": (2,),
        "ld.global.b128": (8, 4),
        "cp.async.ca.4": (2,),
        "cp.async.ca.16": (8, 4),
        "cp.async.ca.16.source": (8,),
        "atom.shared.add.u32": (2,),
    }
    cases = [(name, shift) for name, several in shifts.items() for shift in (0, *several)]
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda case: run(program, *case, check=False, timeout=60).stdout.strip(), cases))


def record_timing(program: Path, table: Path) -> None:
    with table.open("w") as file:
        try:
            subprocess.run([str(program)], stdout=file, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            say("timing: stopped after 60 s; the cases so far are kept")


def main() -> None:
    parser = argparse.ArgumentParser(description="Counters of one warp instruction at a time.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=3600, help="start no profiler run after this long")
    parser.add_argument("--scale", type=float, default=1.0, help="stretch the number of patterns")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="parts, comma-separated: a group's name, misaligned, timing"
    )
    arguments = parser.parse_args()
    began = time.monotonic()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    parts = groups(arguments.scale, arguments.seed)
    wanted = (
        arguments.only.split(",") if arguments.only else [*(p.name for p in parts), "misaligned", "timing"]
    )
    with tempfile.TemporaryDirectory() as folder:
        programs = build(Path(folder))
        (out / "machine.json").write_text(json.dumps(machine(programs["limits"]), indent=1) + "\n")
        if "misaligned" in wanted:
            (out / "misaligned.jsonl").write_text("\n".join(misaligned_cases(programs["misaligned"])) + "\n")
        if "timing" in wanted:
            record_timing(programs["timing"], out / "timing.jsonl")
        known = known_counters(out)
        say(f"built and timed in {time.monotonic() - began:.1f} s")
        for group in parts:
            if group.name in wanted:
                measure(programs["access"], group, known, out, began + arguments.seconds)


if __name__ == "__main__":
    main()
