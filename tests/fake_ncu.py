"""A profiler for tests: runs the program it is given, and answers with pages in the form of Nsight Compute's.

    fake_ncu.py MODE ...      the rest are ncu's own arguments

MODE says what goes wrong: nothing, the permission, the driver, a missing metric, or the report.
"""

import json
import subprocess
import sys
from pathlib import Path

RAW_HEAD = ["ID", "Process ID", "Kernel Name", "Block Size", "dram__bytes_read.sum", "gpu__time_duration.sum",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__t_sector_hit_rate.pct",
            "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"]  # fmt: skip
UNITS = ["", "", "", "", "byte", "ns", "", "%", "%"]
SOURCE_HEAD = ["Address", "Source", "inst_executed", "memory_l1_wavefronts_shared",
               "memory_l1_wavefronts_shared_ideal", "memory_l2_theoretical_sectors_global"]  # fmt: skip
INSTRUCTIONS = [
    ["0x7f86ef7ae280", "      LDC.64 R8, c[0x0][0x280]", "8192", "0", "0", "0"],
    ["0x7f86ef7ae440", "@P2   BRA 0x7f86ef7ae5b0", "8192", "0", "0", "0"],
    ["0x7f86ef7ae520", "      LDG.E R20, desc[UR6][R20.64]", "8192", "0", "0", "32768"],
    ["0x7f86ef7ae5a0", "      STS [R23], R20", "8192", "8192", "8192", "0"],
    ["0x7f86ef7aee30", "@!P0  LDS R23, [R23]", "8,192", "262,144", "8192", "0"],
    ["0x7f86ef7aee40", "@!P0  LDS R24, [R24]", "8,192", "262,144", "8192", "0"],
    ["0x7f86ef7aee90", "      LDGDEPBAR", "8,192", "0", "0", "0"],
]


def csv(*rows: list[str]) -> str:
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)


def pages(kernels: list[str]) -> dict[str, str]:
    """The two pages of a report about launches of these kernels."""
    raw = [[str(i), "2410", f"{name}[v2,cw51c](Array<float>)", "(32, 8, 1)", "4,199,680", "4992", "1,048,576",
            "64.96", "6.06"] for i, name in enumerate(kernels)]  # fmt: skip
    source = [csv(["Kernel Name", f"lanewise::{name}"], SOURCE_HEAD, *INSTRUCTIONS) for name in kernels]
    return {"raw": csv(RAW_HEAD, UNITS, *raw), "source": "\n".join(source)}


def main(mode: str, arguments: list[str]) -> None:
    say = sys.stdout.write
    if arguments == ["--version"]:
        say("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 1)\n")
    elif "--import" in arguments:
        kernels = json.loads(Path(arguments[arguments.index("--import") + 1]).read_text())
        say(pages(kernels)[arguments[arguments.index("--page") + 1]])
    elif mode == "permission":
        say(
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance\n"
        )
    elif mode == "driver":
        say("==ERROR== Cuda driver is not compatible with Nsight Compute.\n")
    elif mode == "metric" and "dram__bytes_read.sum" in arguments[arguments.index("--metrics") + 1]:
        say("==ERROR== Failed to find metric dram__bytes_read.sum\n==ERROR== No metrics to collect\n")
    else:
        at = arguments.index("-o") + 1
        child = arguments[at + 1 :]
        subprocess.run(child, check=True)
        done = [json.loads(line) for line in Path(child[-1]).read_text().splitlines()]
        if mode != "report":
            launched = [line["kernel"] for line in done if "error" not in line]
            Path(f"{arguments[at]}.ncu-rep").write_text(json.dumps(launched))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
