"""The imports of src/lanewise are those of the table below, and importing lanewise stays light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "lanewise"

# What each module or package may import: others of ours, then third parties. The standard library is free.
# Data flows one way: kernel -> trace -> access -> memory model -> figures, checks, pages.
# The tracer knows no bank, the model knows no kernel, figures run nothing.
# A name with ? may be imported late only: inside a function, or for type checkers.
# To allow a new import, first ask whether it runs against that flow; then change the row here.
FOUNDATION = "errors text integers machine"
ACCESS = f"{FOUNDATION} instructions access"
LAYOUT = f"{FOUNDATION} indexmap inttuples layouts swizzles tma fragments"
MAY_IMPORT: dict[str, tuple[str, str]] = {
    "errors": ("", ""),
    "text": ("", ""),
    "integers": ("errors", ""),
    # One warp instruction as data, and what it costs.
    "machine": ("errors text integers", ""),
    "instructions": (FOUNDATION, ""),
    "access": (f"{FOUNDATION} instructions", "numpy"),
    "memory": (ACCESS, "numpy numba"),
    # Where the elements of a tile lie.
    "inttuples": ("errors text integers", ""),
    "indexmap": ("errors text integers", "numpy"),
    "layouts": ("errors text integers indexmap inttuples", "numpy"),
    "swizzles": ("errors text integers indexmap inttuples layouts", "numpy"),
    "tma": (f"{FOUNDATION} indexmap layouts swizzles", "numpy"),
    "fragments": (f"{ACCESS} indexmap inttuples layouts", "numpy"),
    "search": (f"{ACCESS} memory {LAYOUT}", "numpy"),
    # Kernels, and what they were seen to do.
    "ptx": (f"{FOUNDATION} fragments trace", "numpy numba llvmlite"),
    "kernels": ("ptx", "numpy numba"),
    "trace": (f"{ACCESS} memory lowering? ptx?", "numpy"),
    "lowering": (f"{ACCESS} memory trace", "numpy numba"),
    "records": (FOUNDATION, ""),
    "profiler": ("errors", ""),
    "validation": (f"{ACCESS} memory records", "numpy"),
    # What is measured, and on which GPU it was.
    "experiments": ("kernels", "numpy"),
    "measure": ("errors text records experiments ptx", "numpy numba torch cupy"),
    "counters": ("errors records experiments measure", ""),
    "reconcile": ("errors records experiments measure trace lowering", "numpy"),
    # How long tiles take through buffers.
    "pipeline": ("errors integers", ""),
    # What people see.
    "display": (f"{ACCESS} memory", ""),
    "results": ("errors text records display", ""),
    "bottleneck": ("errors text machine records display trace?", ""),
    "figures": (f"{ACCESS} memory {LAYOUT} pipeline", "numpy matplotlib"),
    "checks": (f"{ACCESS} memory trace", "numpy"),
    "testing": ("checks trace", ""),
    "formulas": (ACCESS, ""),
    # Labs: kernels and records to compare with, drawings and a GPU only when asked for.
    "labs": (
        f"{ACCESS} memory {LAYOUT} trace checks results display pipeline bottleneck profiler search records kernels figures? measure? ptx",
        "numpy numba IPython",
    ),
    "grading": ("errors text trace labs", "nbformat joblib"),
    "claims": (
        f"{ACCESS} memory {LAYOUT} search trace? records results display kernels? experiments?",
        "numpy",
    ),
    # Cases from the field: model and tracer on small kernels of their own.
    "field_cases": (
        f"{ACCESS} memory {LAYOUT} search trace display records? results? profiler? lowering? ptx",
        "numpy numba",
    ),
    "__init__": (
        f"{ACCESS} memory {LAYOUT} search trace checks records results bottleneck validation pipeline display"
        " figures",
        "",
    ),
    "commands": (
        f"{ACCESS} memory {LAYOUT} search trace formulas profiler figures? grading? labs?",
        "numpy typer rich",
    ),
    "__main__": ("*", "numpy typer rich"),
}

# Loading these takes long or needs more than a laptop has: `import lanewise` must not.
HEAVY = ("numba", "matplotlib", "IPython")


@dataclass(frozen=True)
class Import:
    """One imported name, dotted in full, with its line; `late` if importing the module does not import it."""

    name: str
    line: int
    late: bool


def imports_of(source: str, package: str) -> Iterator[Import]:
    """Everything that `source`, a module inside `package`, imports."""
    tree = ast.parse(source)
    late = {inner for node in ast.walk(tree) if _runs_late(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            # `from lanewise import memory` imports the module memory.
            names = [f"lanewise.{alias.name}" for alias in node.names] if module == "lanewise" else [module]
        else:
            continue
        yield from (Import(name, node.lineno, node in late) for name in names)


def _runs_late(node: ast.AST) -> bool:
    """A function, or `if TYPE_CHECKING:`."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING") and not node.orelse
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def is_allowed(imported: Import, importer: str) -> bool:
    """Whether the table lets the module or package `importer` import this."""
    ours, theirs = (set(entry.split()) for entry in MAY_IMPORT[importer])
    top, _, rest = imported.name.partition(".")
    if top != "lanewise":
        return top in sys.stdlib_module_names or top in theirs
    target = rest.partition(".")[0]
    if "*" in ours or (target and target == importer):
        return True
    return target in ours or (imported.late and f"{target}?" in ours)


def wrong_edges(files: dict[str, str]) -> list[str]:
    """What the table forbids among the imports of `files`: path inside src/lanewise -> source text."""
    complaints = []
    for path, source in files.items():
        name = path.removesuffix(".py").split("/")[0]
        if name not in MAY_IMPORT:
            complaints.append(f"lanewise.{name} has no row in MAY_IMPORT: add what it may import.")
            continue
        package = ".".join(("lanewise", *path.split("/")[:-1]))
        for imported in imports_of(source, package):
            if not is_allowed(imported, name):
                allowed = " ".join(sorted(" ".join(MAY_IMPORT[name]).split())) or "the standard library"
                complaints.append(
                    f"src/lanewise/{path}:{imported.line} imports {imported.name}, which {name} may not "
                    f"(allowed: {allowed}). If the edge is right, change the row in MAY_IMPORT."
                )
    return complaints


def test_imports_follow_the_table() -> None:
    files = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    assert files
    complaints = wrong_edges(files)
    assert not complaints, "\n".join(complaints)


def test_the_table_has_no_cycle_and_names_only_its_own_rows() -> None:
    rows = {name: set(ours.split()) - {"*"} for name, (ours, _) in MAY_IMPORT.items()}
    assert {name.rstrip("?") for name in set().union(*rows.values())} <= set(rows)
    early = {name: {other for other in others if not other.endswith("?")} for name, others in rows.items()}
    TopologicalSorter(early).prepare()  # raises CycleError


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        (
            "memory/bulk.py",
            "from lanewise.trace import Trace",
            "imports lanewise.trace, which memory may not",
        ),
        ("memory/bulk.py", "from ..trace import Trace", "imports lanewise.trace, which memory may not"),
        ("memory/bulk.py", "from .. import trace", "imports lanewise.trace, which memory may not"),
        ("memory/bulk.py", "from lanewise import figures", "imports lanewise.figures, which memory may not"),
        ("access.py", "import lanewise", "imports lanewise, which access may not"),
        ("trace/run.py", "def f():\n    import numba", "trace/run.py:2 imports numba, which trace may not"),
        ("trace/run.py", "from lanewise import lowering", "imports lanewise.lowering, which trace may not"),
        ("figures/maps.py", "import pandas as pd", "imports pandas, which figures may not"),
        ("novelty.py", "", "lanewise.novelty has no row in MAY_IMPORT"),
    ],
)
def test_a_wrong_edge_is_named(path: str, source: str, complaint: str) -> None:
    assert complaint in "\n".join(wrong_edges({path: source}))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "memory/bulk.py",
            "import math, numpy as np\nfrom lanewise.memory.cost import Phase\nfrom . import cost",
        ),
        (
            "memory/bulk.py",
            "from lanewise import access\nfrom .cost import Phase\nfrom ..access import Access",
        ),
        ("__main__.py", "import lanewise\nfrom lanewise import trace"),
        ("trace/run.py", "def f():\n    from lanewise.lowering import as_compiled"),
        ("trace/run.py", "if TYPE_CHECKING:\n    from lanewise.lowering import Comparison"),
    ],
)
def test_a_right_edge_is_left_alone(path: str, source: str) -> None:
    assert wrong_edges({path: source}) == []


def misplaced_errors(files: dict[str, str]) -> list[str]:
    """Error classes that are not where the rule in src/lanewise/errors.py puts them."""
    nodes = [
        (path.removesuffix(".py").split("/")[0], node)
        for path, source in files.items()
        for node in ast.walk(ast.parse(source))
    ]
    classes = [(module, node) for module, node in nodes if isinstance(node, ast.ClassDef)]
    home = {"Error": "errors"}
    while found := {
        node.name: module
        for module, node in classes
        if node.name not in home and {ast.unparse(base) for base in node.bases} & set(home)
    }:
        home |= found
    handled = {
        id(name)
        for _, node in nodes
        if isinstance(node, ast.ExceptHandler) and node.type
        for name in ast.walk(node.type)
    }
    users: dict[str, set[str]] = {error: set() for error in home}
    for module, node in nodes:
        if isinstance(node, ast.Name) and node.id in home and id(node) not in handled:
            users[node.id].add(module)
    return [
        f"{error} is defined in {place} and raised in {sorted(users[error])}"
        for error, place in home.items()
        if error != "Error"
        if (len(users[error] - {"errors"}) < 2 if place == "errors" else users[error] - {place})
    ]


def test_an_error_lives_where_it_is_raised_or_in_errors_if_several_modules_raise_it() -> None:
    files = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    assert misplaced_errors(files) == []


def test_a_misplaced_error_is_named() -> None:
    lonely = {"errors.py": "class Error(Exception): ...\nclass Lonely(Error): ...", "a.py": "raise Lonely()"}
    assert misplaced_errors(lonely) == ["Lonely is defined in errors and raised in ['a']"]
    shared = {"a/b.py": "class Shared(Error): ...\nraise Shared()", "c.py": "raise Shared()"}
    assert misplaced_errors(shared) == ["Shared is defined in a and raised in ['a', 'c']"]
    caught = {"a/b.py": "class Own(Error): ...", "c.py": "try: ...\nexcept Own: ..."}
    assert misplaced_errors(caught) == []


def heavy_modules_after(statement: str) -> list[str]:
    """Which of the heavy packages a fresh interpreter has loaded after running `statement`."""
    report = f"import sys; {statement}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    command = [sys.executable, "-c", report]
    environment = {"PYTHONPATH": str(SOURCE.parent)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return result.stdout.split()


def test_importing_lanewise_is_light() -> None:
    assert heavy_modules_after("import lanewise") == []


NUMPY_ALONE = """
import sys
sys.modules.update(dict.fromkeys(("numba", "matplotlib", "IPython")))  # None: importing them fails
import numpy as np
import lanewise as lw
many = np.tile(128 * np.arange(32), (30_000, 1))  # so many that numba would count them
print(lw.memory.shared_wavefronts("ld.shared.b32", many)[0].mean())
print(lw.search_layouts([("ld.shared.b32", lambda lane: lane, 0)], 32, 32).best.is_ideal)
try:
    lw.figures
except lw.Error as error:
    print(error)
"""


def test_with_numpy_alone_all_but_figures_works() -> None:
    command = [sys.executable, "-c", NUMPY_ALONE]
    environment = {"PYTHONPATH": str(SOURCE.parent)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "32.0",
        "True",
        "lanewise.figures needs Matplotlib, which is missing. Run: pip install matplotlib",
    ]


def test_the_check_for_heavy_modules_can_fail() -> None:
    assert heavy_modules_after("import lanewise, matplotlib") == ["matplotlib"]
