"""The commands of this package as typer sees them; `add_to(app)` puts them on a command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.errors import Error

if TYPE_CHECKING:
    from lanewise.access import WarpAccess

Formula = Annotated[str, typer.Argument(help="Elements by lane, and a type: 'lane*33 f32', 'lane f32x4'.")]
Store = Annotated[bool, typer.Option("--store", help="A store; a load by default.")]
Base = Annotated[int, typer.Option("--base", help="Byte address at which the formula counts from.")]
Mask = Annotated[str, typer.Option("--mask", help="Active lanes, 32 bits: 0xffff for the first 16.")]
AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]
Picture = Annotated[Path | None, typer.Option("--picture", help="Also draw it: FILE.svg or FILE.png.")]
Kernel = Annotated[str, typer.Argument(help="FILE.py:kernel. The file is read, not executed.")]
Grid = Annotated[str, typer.Option("--grid", help="Blocks, x first: 64 or 16x16.")]
Block = Annotated[str, typer.Option("--block", help="Threads of a block, x first: 256 or 32x8.")]
Arg = Annotated[
    list[str],
    typer.Option(
        "--arg",
        help="In order: 64x64:f32:arange, 8x8:i32, 3, 2.5:f32. Fills: zeros, ones, arange, random, nan.",
    ),
]
Dynamic = Annotated[int, typer.Option("--dynamic-shared", min=0, help="Bytes of dynamic shared memory.")]
Machine = Annotated[str, typer.Option("--machine", help="sm_75, sm_80, sm_89, sm_90, ...")]
Lowering = Annotated[
    str, typer.Option("--lowering", help="source, or a target: count what is compiled for it.")
]
RunFile = Annotated[bool, typer.Option("--import", help="Execute the file: for your own kernels only.")]
EVERY_LANE = "0xffffffff"


def banks(
    formula: Formula,
    store: Store = False,
    base: Base = 0,
    mask: Mask = EVERY_LANE,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """What a warp's access to shared memory costs: wavefronts, and which banks are why.

    Example: lanewise banks "lane*33 f32"
    """
    from lanewise.commands.access import banks_report, read

    access = read(formula, store=store, space="shared", base=base, mask=mask)
    _show(access, banks_report(access), picture, as_json)


def sectors(
    formula: Formula,
    store: Store = False,
    base: Base = 0,
    mask: Mask = EVERY_LANE,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """What a warp's access to global memory costs: sectors and lines, and the share of them that is used.

    Example: lanewise sectors "lane*3 f32" --base 16
    """
    from lanewise.commands.access import read, sectors_report

    access = read(formula, store=store, space="global", base=base, mask=mask)
    _show(access, sectors_report(access), picture, as_json)


def trace(
    kernel: Kernel,
    grid: Grid = "1",
    block: Block = "32",
    arg: Arg = [],  # noqa: B006
    dynamic_shared: Dynamic = 0,
    machine: Machine = "sm_90",
    lowering: Lowering = "source",
    run_file: RunFile = False,
    form: Annotated[str, typer.Option("--format", help="table, json or html.")] = "table",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the report to a file.")] = None,
    fail_on: Annotated[
        list[str],
        typer.Option("--fail-on", help="Status 1 for: excess, sectors, hazards, float64, not-modelled."),
    ] = [],  # noqa: B006
) -> None:
    """Trace a kernel with no GPU: what each line does to memory, and its hazards.

    Example: lanewise trace my.py:transpose --grid 2x2 --block 32x8 --arg 64x64:f32:random --arg 64x64:f32:nan
    --fail-on excess,hazards
    """
    from lanewise.commands import trace as command

    if form not in ("table", "json", "html"):
        raise command.NoKernel(f"--format {form!r}: choose table, json or html.")
    command.failures_known(fail_on)
    report = command.traced(
        kernel, grid, block, arg, dynamic_shared_bytes=dynamic_shared, machine=machine, lowering=lowering,
        run_file=run_file,
    )  # fmt: skip
    _write({"table": str, "json": _json_of(command.as_json), "html": command.as_html}[form](report), output)
    failed = command.failures(report, fail_on)
    for sentence in failed:
        sys.stderr.write(f"failed: {sentence}\n")
    if failed:
        raise typer.Exit(1)


def find(
    tile: Annotated[str, typer.Argument(help="ROWSxCOLUMNS:TYPE, such as 64x32:f16.")],
    accesses: Annotated[
        list[str],
        typer.Argument(help="st.shared.b128:rows, ld.shared.b32:columns, ldmatrix.x4:matrices, ..."),
    ],
    as_json: AsJson = False,
) -> None:
    """Find the layout of a tile that serves all its accesses without conflicts; code to copy.

    Example: lanewise swizzle find 64x32:f16 st.shared.b128:rows ldmatrix.x4:matrices
    """
    from lanewise.commands.swizzle import code, found

    search = found(tile, accesses)
    if as_json:
        listed = [
            {
                "name": one.name,
                "kind": one.kind,
                "bytes": one.n_bytes,
                "excess": one.excess,
                "problem": one.problem,
            }
            for one in search.candidates
        ]
        _write(json.dumps({"schema": 1, "verdict": search.verdict, "candidates": listed}, indent=1), None)
        return
    _write(f"{search}\n\n{code(search)}", None)


def explain_swizzle(
    swizzle: Annotated[
        str, typer.Argument(help="Bits, base, shift, in elements: 3,3,3 or 'Swizzle<3,3,3>'.")
    ],
) -> None:
    """Show which bits of an offset a swizzle flips.

    Example: lanewise swizzle explain 3,3,3
    """
    from lanewise.commands.swizzle import explained

    _write(explained(swizzle).picture(), None)


def explain(
    report: Annotated[Path, typer.Argument(help="What ncu --csv --page raw (or details) has written.")],
    kernel: Annotated[str, typer.Option("--trace", help="FILE.py:kernel, to compare with.")] = "",
    grid: Grid = "1",
    block: Block = "32",
    arg: Arg = [],  # noqa: B006
    dynamic_shared: Dynamic = 0,
    lowering: Lowering = "source",
    as_json: AsJson = False,
) -> None:
    """Say what the metrics of an Nsight Compute export mean, which repeat exactly, and what a trace says.

    Example: lanewise explain report.csv --trace my.py:transpose --grid 2x2 --block 32x8 --arg 64x64:f32 --arg
    64x64:f32
    """
    from lanewise.commands.explain import explained, readings
    from lanewise.commands.trace import traced

    found = readings(report)
    beside = (
        traced(kernel, grid, block, arg, dynamic_shared_bytes=dynamic_shared, lowering=lowering)
        if kernel
        else None
    )
    text, data = explained(found, beside)
    _write(json.dumps(data, indent=1) if as_json else text, None)


def add_to(app: typer.Typer) -> None:
    """Put the commands on a command line."""
    for command in (banks, sectors, trace, explain):
        app.command()(command)
    layouts = typer.Typer(help="Find a layout for a tile, or explain a swizzle.", no_args_is_help=True)
    layouts.command("find")(find)
    layouts.command("explain")(explain_swizzle)
    app.add_typer(layouts, name="swizzle")


def _show(
    access: WarpAccess, report: tuple[str, dict[str, Any]], picture: Path | None, as_json: bool
) -> None:
    text, data = report
    if picture is not None:
        from lanewise.commands.access import draw

        draw(access, picture)
    _write(json.dumps({"schema": 1, **data}, indent=1) if as_json else text, None)


def _json_of(make: Any) -> Any:
    return lambda report: json.dumps(make(report), indent=1)


def _write(text: str, path: Path | None) -> None:
    """Print, or write to a file. Raises `Unwritable` for a file that cannot be written."""
    if path is None:
        sys.stdout.write(text.rstrip("\n") + "\n")
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unwritable(f"{path}: it cannot be written: {error.strerror}.") from None


class Unwritable(Error):
    """An output file that cannot be written."""
