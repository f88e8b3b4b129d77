"""Turn what `measure.py` wrote into recorded tables, and say where the GPU and the package disagree.

    python record.py RAW RECORDS --corpus corpus.zip     -> RECORDS/machine_code.json
    python record.py RAW RECORDS --faults                -> RECORDS/sanitizer.json

RECORDS is `src/lanewise/recorded/h200`, or another folder for another GPU; `provenance.json` there is
written by hand. A verdict of the sanitizer that differs from the tracer's must have its reason in `cases.py`.
"""

import argparse
import collections
import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from cases import REASONS, all_twins  # noqa: E402
from launch import launches  # noqa: E402

COUNTERS = ("wavefronts", "ideal", "sectors")
# A predicate stands before its instruction, and the profiler leaves out which operands are reused.
OPCODE = re.compile(r"(?:@!?\w+ )?([A-Z]\w*[.\w]*)")


def machine_code(raw: Path, bundle: ZipFile) -> list[dict[str, Any]]:
    """Every launch: its memory instructions with their counters, and how many of its arrays were compared."""
    measured = json.loads((raw / "counters.json").read_text())["launches"]
    rows, tally = [], collections.Counter[str]()
    with ZipFile(raw / "memory.zip") as memory:
        for number, launch in launches(bundle):
            if launch["name"] not in measured:
                say(f"not profiled: {launch['name']}")
                continue
            page = memory_instructions(measured[launch["name"]], launch)
            arrays = [] if launch["stopped"] else launch["arrays"]
            equal = [same_bits(bundle, memory, number, array) for array in arrays]
            for place, good in enumerate(equal):
                if not good:
                    say(f"{launch['name']}: array {place} differs")
            tally += {"arrays": len(equal), "equal arrays": sum(equal)}
            compare_counters(launch, page, tally)
            rows.append({"name": launch["name"], "arrays_equal": sum(equal), "instructions": page})
    for what, count in sorted(tally.items()):
        say(f"{count:7,} {what}")
    return rows


def memory_instructions(page: list[list[Any]], launch: dict[str, Any]) -> list[list[Any]]:
    """The rows of the instructions that the disassembly calls memory instructions, by their opcode."""
    wanted = {claim["opcode"] for claim in launch["claims"]}
    found = [(OPCODE.match(text), counted) for text, *counted in page]
    rows = [[match[1], *counted] for match, counted in found if match and match[1] in wanted]
    if [row[0] for row in rows] != [claim["opcode"] for claim in launch["claims"]]:
        raise RuntimeError(f"{launch['name']}: the profiler shows other instructions than the disassembly.")
    return rows


def compare_counters(launch: dict[str, Any], page: list[list[Any]], tally: collections.Counter[str]) -> None:
    """Compare each claimed cost with the counters, and print what differs."""
    # How often an update is tried again depends on who comes first.
    retries = any(".CAS" in claim["opcode"] for claim in launch["claims"])
    for claim, (_, executed, *counted) in zip(launch["claims"], page, strict=True):
        if retries or launch["stopped"]:
            tally["instructions of kernels that retry or were not run to the end"] += 1
        elif "space" not in claim:
            tally["instructions never executed" if not executed else "EXECUTED THERE ONLY"] += 1
            if executed:
                say(f"{launch['name']}: {claim['machine']} ran on the GPU, not here")
        elif claim["space"] not in ("shared", "global"):
            tally["instructions on other memory"] += 1
        elif claim["not_modelled"]:
            tally["instructions not modelled"] += 1
        elif [claim[name] for name in COUNTERS] == counted:
            tally[f"{claim['space']} instructions exact"] += 1
        else:
            tally["DIFFERENT"] += 1
            mine = [claim[name] for name in COUNTERS]
            say(f"{launch['name']}: {claim['machine']}: {COUNTERS} here {mine}, there {counted}")


def same_bits(bundle: ZipFile, memory: ZipFile, number: int, array: dict[str, Any]) -> bool:
    """Whether the GPU left exactly the array that the machine code computed here; not counting padding."""
    expected = np.load(io.BytesIO(bundle.read(array["file"])))
    raw = memory.read(f"{number}.{array['allocation']}")
    if not expected.size:
        return True
    left = np.ndarray(expected.shape, expected.dtype, raw, array["offset"], tuple(array["strides"]))
    pairs = [(left[name], expected[name]) for name in expected.dtype.names or ()] or [(left, expected)]
    return all(there.tobytes() == here.tobytes() for there, here in pairs)


def verdicts(raw: Path) -> list[dict[str, Any]]:
    """Each probe: what the tracer says, what the tool says, and what the kernel does without a tool."""
    twins = {twin.name: twin for twin in all_twins()}
    rows = []
    for result in json.loads((raw / "sanitizer.json").read_text()):
        name = result["name"].removesuffix(" (optimised)")
        if name not in twins:
            say(f"no longer a probe: {name}")
            continue
        twin, optimised = twins[name], name != result["name"]
        ours, theirs = twin.verdict(), tool_verdict(result)
        agree = (ours == "silent") == (theirs == "silent")
        reason = "" if agree else REASONS.get((twin.kind, twin.case), "")
        if not agree and not reason:
            raise RuntimeError(
                f"{result['name']}: the tracer says {ours}, {twin.tool} {theirs}. Find out why."
            )
        rows.append(
            {
                "kind": twin.kind,
                "case": twin.case,
                "planted": twin.planted,
                "tool": twin.tool,
                "optimised": optimised,
                "tracer": ours,
                "sanitizer": theirs,
                "message": first_message(result["output"]),
                "alone": alone(result),
                "agree": agree,
                "reason": reason,
            }
        )
    return rows


def tool_verdict(result: dict[str, Any]) -> str:
    """Read the tool's summary: error, warning, silent, or hangs."""
    if result["ended"] == "hangs":
        return "hangs"
    races = re.search(r"\((\d+) errors?, (\d+) warnings?\)", result["output"])
    if races:
        return "error" if int(races[1]) else "warning" if int(races[2]) else "silent"
    errors = re.search(r"ERROR SUMMARY: (\d+) errors?", result["output"])
    if not errors:
        raise RuntimeError(f"{result['name']}: no summary in {result['output'][-300:]!r}")
    return "error" if int(errors[1]) else "silent"


def first_message(output: str) -> str:
    """The tool's first finding in its own words, without addresses."""
    lines = [line.removeprefix("=========").strip() for line in output.splitlines()]
    found = next(
        (i for i, line in enumerate(lines) if re.match(r"Invalid|Uninit|Barrier|Error:|Warning:", line)), None
    )
    if found is None:
        return ""
    address = next((line for line in lines[found + 1 : found + 5] if "misaligned" in line), "")
    text = re.sub(r" at __shared__ 0x\w+ in block .*| of size .*", "", lines[found]).rstrip(".")
    return f"{text}, misaligned" if address else text


def alone(result: dict[str, Any]) -> str:
    """What the kernel did without a tool: "finishes", "hangs", or the driver's error."""
    if result["alone"] in ("0", "hangs"):
        return "finishes" if result["alone"] == "0" else "hangs"
    return str(result["alone_output"]).strip().rpartition(": ")[2]


def write(path: Path, table: str, rows: list[dict[str, Any]]) -> None:
    body = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f'{{"{table}": [\n{body}\n]}}\n')
    say(f"{path}: {len(rows)} {table}")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Turn raw measurements into recorded tables.")
    parser.add_argument("raw", type=Path)
    parser.add_argument("records", type=Path)
    parser.add_argument("--corpus", type=Path, help="the bundle that was measured")
    parser.add_argument("--faults", action="store_true")
    arguments = parser.parse_args()
    if arguments.corpus:
        with ZipFile(arguments.corpus) as bundle:
            rows = machine_code(arguments.raw, bundle)
        write(arguments.records / "machine_code.json", "kernels", rows)
    if arguments.faults:
        rows = verdicts(arguments.raw)
        write(arguments.records / "sanitizer.json", "cases", rows)
        kinds = collections.Counter((row["kind"], row["planted"], row["agree"]) for row in rows)
        for (kind, planted, agree), count in sorted(kinds.items()):
            say(f"{count:4} {kind}, {'planted' if planted else 'clean'}: {'agree' if agree else 'differ'}")


if __name__ == "__main__":
    main()
