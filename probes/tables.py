"""Turn what `measure.py` wrote into the recorded tables of the package.

    python tables.py RAW TABLES        e.g. tables.py out ../src/lanewise/recorded/h200

The only arithmetic is the subtraction of what a launch counts by itself; rows without an active lane are left
out of the wavefront tables. The README.md beside the tables explains both. `provenance.json` is written by
hand.
"""

import csv
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

Row = dict[str, str]

PATTERN = ("instruction", "active_mask", "byte_offsets")
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
# `access.cu` calls an addition of the constant 1 `.one`. The tables give that form, which the compiler turns
# into ATOMS.POPC.INC, the plain name, and mark the one that adds a value from a register.
RENAMED = {"red.shared.add.u32": "red.shared.add.u32.reg", "red.shared.add.one": "red.shared.add.u32"}
# A kernel that uses shared memory counts one wavefront more than its instruction.
BY_LAUNCH = 1
# ptxas 13.0 puts three predicated-off LDS before the first LDGSTS, and each counts one wavefront.
BY_ASYNC_COPY = 3


def shared(row: Row) -> Row:
    return {"wavefronts": minus(row[WAVEFRONTS], BY_LAUNCH), "conflicts": row[CONFLICTS]}


def global_traffic(row: Row) -> Row:
    op = row["instruction"].split(".")[0]
    return {what: row[f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}"] for what in ("requests", "sectors")}


def copies(row: Row) -> Row:
    counted = ".ca." in row["instruction"]  # these counters see nothing of cp.async.cg
    traffic = {what: row[f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld"] for what in ("requests", "sectors")}
    return {
        "source_offsets": "" if row["source_offsets"] == contiguous(row) else row["source_offsets"],
        "wavefronts": minus(row[WAVEFRONTS], BY_LAUNCH + BY_ASYNC_COPY) if counted else "",
        "conflicts": row[f"{CONFLICTS}_op_ldgsts"] if counted else "",
        **traffic,
    }


def source_page(row: Row) -> Row:
    counts = {"wavefronts": "memory_l1_wavefronts_shared", "ideal": "memory_l1_wavefronts_shared_ideal"}
    return {"source_offsets": row["source_offsets"], **{name: row[key] for name, key in counts.items()}}


def contiguous(row: Row) -> str:
    width = int(row["instruction"].split(".")[3])
    return " ".join(str(width * lane) for lane in range(32))


def minus(count: str, constant: int) -> str:
    return str(int(count) - constant)


def is_atomic(row: Row) -> bool:
    return row["instruction"].startswith(("red", "atom"))


def write(path: Path, rows: Iterable[Row], counts: Callable[[Row], Row], keep_empty: bool = False) -> None:
    """Write the table, sorted and without the launches that have no instruction (or no active lane)."""
    kept = [
        {**row, "instruction": RENAMED.get(row["instruction"], row["instruction"])}
        for row in rows
        if row["instruction"] != "none" and (keep_empty or int(row["active_mask"], 16))
    ]
    lines = sorted([*(row[name] for name in PATTERN), *counts(row).values()] for row in kept)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*PATTERN, *counts(kept[0])])
        writer.writerows(lines)


def read(path: Path) -> list[Row]:
    return list(csv.DictReader(path.read_text().splitlines()))


def main(raw: Path, tables: Path) -> None:
    lsu = read(raw / "shared.csv")
    write(tables / "shared_recheck.csv", [row for row in lsu if not is_atomic(row)], shared)
    write(tables / "shared_atomics.csv", [row for row in lsu if is_atomic(row)], shared)
    write(tables / "async_copies.csv", read(raw / "async.csv") + read(raw / "tiles.csv"), copies)
    write(tables / "global_recheck.csv", read(raw / "global.csv"), global_traffic, keep_empty=True)
    write(tables / "global_atomics.csv", read(raw / "global_atomics.csv"), global_traffic)
    write(tables / "source_page.csv", read(raw / "source_page.csv"), source_page, keep_empty=True)
    for name in ("timing", "misaligned"):
        cases = [json.loads(text) for text in (raw / f"{name}.jsonl").read_text().splitlines()]
        for case in cases:
            case["instruction"] = RENAMED.get(case["instruction"], case["instruction"])
        body = ",\n".join(json.dumps(case) for case in cases)
        (tables / f"{name}.json").write_text(f'{{"cases": [\n{body}\n]}}\n')
    (tables / "machine.json").write_text((raw / "machine.json").read_text())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: tables.py RAW TABLES")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
