"""The command line; `lanewise --help` lists the commands, some of which are in `lanewise.commands`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lanewise.errors import Error, Unfit

try:
    import typer
    from rich.console import Console

    from lanewise.commands import grades, line
except ModuleNotFoundError as error:  # with numpy alone the package works; its command line does not
    sys.exit(f"The command line needs {error.name}, which is missing. Run: pip install typer rich")

if TYPE_CHECKING:
    from lanewise.experiments import Experiment
    from lanewise.measure import Outcome

app = typer.Typer(
    help="GPU memory access patterns, lane by lane.", no_args_is_help=True, pretty_exceptions_enable=False
)
out = Console()
err = Console(stderr=True)

Topic = Annotated[list[str], typer.Option("--topic", help="Only this topic (padding); may be repeated.")]
Only = Annotated[list[str], typer.Option("--only", help="Only this experiment (E-04); may be repeated.")]
All = Annotated[bool, typer.Option("--all", help="Every topic.")]
GpuName = Annotated[str, typer.Option(help="The records' folder (h200). By default from the GPU's name.")]
Again = Annotated[bool, typer.Option("--again", help="Also what is recorded and current.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where GPU folders lie. Default: the package.")]


@app.command()
def measure(
    topic: Topic = [],  # noqa: B006
    every: All = False,
    only: Only = [],  # noqa: B006
    gpu_name: GpuName = "",
    again: Again = False,
    out_folder: Out = None,
    samples: Annotated[int, typer.Option(min=2, help="Samples of each case.")] = 60,
    seconds: Annotated[float, typer.Option(help="The time that one case may take on the GPU.")] = 60.0,
    summary: Annotated[bool, typer.Option("--summary", help="Show what is recorded; needs no GPU.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Time kernels on this machine's GPU and record the figures."""
    from lanewise import measure as measuring

    home = out_folder or _package_records()
    if summary:
        _summary(home, gpu_name, as_json, _chosen(topic))
        return
    topics = _chosen(topic, every, only)
    measuring.require_gpu()
    settings = measuring.Settings(samples)
    provenance = measuring.provenance(settings.samples, settings.warm_ups)
    folder = home / (gpu_name or measuring.short_name(provenance.gpu))
    plan = measuring.Plan(
        topics, folder, provenance, settings, only=tuple(only), again=again, seconds=seconds
    )
    with _bars({name: measuring.n_due(plan, name) for name in topics}) as report:
        outcomes = measuring.measure(plan, report)
    _finish(folder, outcomes)


@app.command()
def counters(
    topic: Topic = [],  # noqa: B006
    every: All = False,
    only: Only = [],  # noqa: B006
    gpu_name: GpuName = "",
    again: Again = False,
    out_folder: Out = None,
) -> None:
    """Read the hardware counters of kernels on this machine's GPU with Nsight Compute, and record them."""
    from lanewise import counters as counting
    from lanewise import measure as measuring

    topics = _chosen(topic, every, only)
    measuring.require_gpu()
    ncu = counting.find_ncu()
    provenance = counting.provenance(ncu)
    folder = (out_folder or _package_records()) / (gpu_name or measuring.short_name(provenance.gpu))
    plan = counting.Plan(topics, folder, provenance, ncu, only=tuple(only), again=again)
    with _bars({name: counting.n_due(plan, name) for name in topics}) as report:
        outcomes = counting.count(plan, lambda name, n_done: report(name, "", n_done))
    _finish(folder, outcomes)


@app.command()
def reconcile(
    topic: Topic = [],  # noqa: B006
    gpu_name: Annotated[str, typer.Option(help="The folder of the counters.")] = "h200",
    out_folder: Out = None,
    write: Annotated[bool, typer.Option("--write", help="Record the table beside the counters.")] = False,
    every: Annotated[bool, typer.Option("--exact", help="Show exact totals too.")] = False,
) -> None:
    """Set arithmetic, trace, machine code and counters side by side, with the reason for each difference."""
    from rich.table import Table

    from lanewise.lowering import why_unavailable
    from lanewise.measure import store
    from lanewise.reconcile import as_content, provenance
    from lanewise.reconcile import reconcile as run

    topics = _chosen(topic)
    if why := why_unavailable():
        raise Unfit(why)
    folder = (out_folder or _package_records()) / gpu_name
    with _bars({name: sum(len(one.counted) for one in given) for name, given in topics.items()}) as report:
        rows = run(topics, folder, lambda name: report(name, "", 1))
    for row in rows:
        if every or row.verdict != "exact":
            numbers = (row.arithmetic, row.traced, row.compiled, row.counted)
            shown = " ".join("-" if number is None else f"{number:,}" for number in numbers)
            case = f"{row.topic} {row.experiment} {row.label} ({row.problem}) {row.total}"
            _say(f"{row.verdict:<9} {case}: {shown}{row.reason and f': {row.reason}'}")
    table = Table("topic", "totals", "exact", "explained", "open", "with counters", box=None)
    for name in (*topics, "all"):
        mine = [row for row in rows if name in (row.topic, "all")]
        verdicts = [sum(row.verdict == verdict for row in mine) for verdict in ("exact", "explained", "open")]
        seen = sum(row.counted is not None for row in mine)
        table.add_row(name, *(f"{n:,}" for n in (len(mine), *verdicts, seen)))
    out.print(table)
    if write:
        path = folder / "reconciliation.json"
        store.write(path, as_content(rows, store.read(path), provenance(folder, topics)))
        _say(f"Record: {path}")
    if any(row.verdict == "open" for row in rows):
        raise typer.Exit(1)


@contextmanager
def _bars(totals: dict[str, int]) -> Iterator[Callable[[str, str, int], None]]:
    """A progress bar for each topic that has something to do; gives what moves them."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    name = TextColumn("{task.fields[topic]:<18}")
    doing = TextColumn("{task.description}", markup=False)
    with Progress(name, BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), doing, console=err) as bars:
        tasks = {topic: bars.add_task("", total=n, topic=topic) for topic, n in totals.items() if n}

        def report(topic: str, doing: str, n_done: int) -> None:
            if topic in tasks:
                bars.update(tasks[topic], advance=n_done, description=doing or None)

        yield report


def _finish(folder: Path, outcomes: list[Outcome]) -> None:
    """Say what was written, and end with status 1 if anything failed."""
    written = [f"{outcome.topic}: {', '.join(outcome.written)}" for outcome in outcomes if outcome.written]
    current = sum(len(outcome.current) for outcome in outcomes)
    failed = [f"{outcome.topic}: {text}" for outcome in outcomes for text in outcome.failed]
    for line in written:
        _say(f"recorded {line}")
    if current:
        _say(f"{current} experiments were current; --again measures them too.")
    if not written and not current and not failed:
        _say("There is nothing to do: no experiment fits.")
    _say(f"Records: {folder}")
    for line in failed:
        _say(f"failed {line}", err)
    if failed:
        raise typer.Exit(1)


def _say(text: str, where: Console | None = None) -> None:
    """Print text as it is, whatever it contains and however long it is."""
    (where or out).print(text, highlight=False, markup=False, soft_wrap=True)


def _package_records() -> Path:
    return Path(str(files("lanewise") / "recorded"))


def _chosen(
    names: list[str], every: bool = True, only: list[str] | None = None
) -> dict[str, tuple[Experiment, ...]]:
    """The experiments of the topics asked for. Raises `Unfit` for a name that there is not."""
    try:
        from lanewise.experiments import experiments_of, topics
    except ModuleNotFoundError as error:
        raise Unfit(f"The experiments need {error.name}. Run: pip install 'lanewise[gpu]'") from error
    unknown = sorted(set(names) - set(topics()))
    if unknown:
        raise Unfit(f"There is no topic {unknown[0]!r}. There are: {', '.join(topics())}.")
    if not (names or every or only):
        raise Unfit("Say what to measure: --all, --topic NAME or --only E-04.")
    chosen = {name: experiments_of(name) for name in topics() if not names or name in names}
    ids = {experiment.id for given in chosen.values() for experiment in given}
    if missing := sorted(set(only or ()) - ids):
        raise Unfit(f"There is no experiment {missing[0]!r}. There are: {', '.join(sorted(ids))}.")
    if not only:
        return chosen
    return {name: given for name, given in chosen.items() if any(one.id in only for one in given)}


def _summary(home: Path, gpu_name: str, as_json: bool, topics: dict[str, tuple[Experiment, ...]]) -> None:
    from rich.table import Table

    from lanewise.measure.summary import as_row, summarise
    from lanewise.records import recorded_gpus

    gpus = [gpu_name] if gpu_name else list(recorded_gpus(home))
    figures = [figure for gpu in gpus for figure in summarise(home, gpu, topics)]
    if as_json:
        sys.stdout.write(json.dumps([as_row(figure) for figure in figures], indent=1) + "\n")
        return
    if not figures:
        _say(f"No times are recorded in {home}. Run: lanewise measure --all")
        return
    table = Table("id", "kernel", "gpu", "value", "unit", "ceiling", "ratio", "stale", box=None)
    for figure in figures:
        ceiling = "" if figure.ceiling is None else f"{figure.ceiling:,.5g}"
        ratio = "" if figure.ratio is None else f"{figure.ratio:.3f}"
        stale = "stale" if figure.stale else ""
        value = f"{figure.value:,.5g}"
        table.add_row(figure.id, figure.kernel, figure.gpu, value, figure.unit, ceiling, ratio, stale)
    Console(width=max(out.width, 150)).print(table, soft_wrap=True)


@app.command()
def doctor() -> None:
    """Say what works on this machine, and what to do about the rest."""
    from lanewise.counters import why_no_profiler
    from lanewise.measure import tools, why_unfit

    _say(tools())
    for what, problem in (
        ("launch kernels on a GPU", why_unfit()),
        ("read hardware counters", why_no_profiler()),
        ("read machine code with no GPU", _why_no_compiler()),
    ):
        mark = "[red]no[/red] " if problem else "[green]yes[/green]"
        out.print(f"{mark} {what}", highlight=False)
        if problem:
            _say(f"    {problem}")


line.add_to(app)
grades.add_to(app)


def _why_no_compiler() -> str:
    try:
        from lanewise.lowering import why_unavailable
    except ModuleNotFoundError as error:
        return f"{error.name} is missing. Run: pip install 'lanewise[sass]'"
    return why_unavailable()


def main() -> None:
    """Run the command line; expected trouble is a sentence and status 2."""
    try:
        app()
    except Error as error:
        _say(str(error), err)
        sys.exit(2)


if __name__ == "__main__":
    main()
