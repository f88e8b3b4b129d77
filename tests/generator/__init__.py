"""Random kernels that are right by construction: no race, no index out of range, no number that overflows a float.

A program is a seed. `generate(seed)` writes the same source for it every time: device functions, then a kernel that
alternates between phases. In a writing phase a thread writes its own slots of shared memory; then all meet at a
barrier; in a reading phase it reads anybody's slots. Between barriers the control flow is free: nested `if`, `for`,
`while`, `break`, `continue`, at the end `return`.

Two restrictions make NumPy's, numba's and the oracle's arithmetic agree bit by bit:
- Each variable has one type, because every assignment casts to it. (numba joins the types of a variable over all
  paths, which a thread that runs alone cannot see.)
- Floats stay small: assignments clamp to +-1000, integers enter float arithmetic modulo 1000, divisors are positive.
  Integers may wrap.

With `plain=True` only int64, float64 and operations that mean the same to Python, NumPy and numba appear, so that
numba's simulator can run the program too.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from tests.generator.program import Program
from tests.generator.writer import Writer

__all__ = ["Program", "generate", "load"]


def generate(seed: int, plain: bool = False) -> Program:
    """Write the program of a seed."""
    return Writer(seed, plain).program()


def load(source: str, folder: Path, name: str) -> Any:
    """Write a source to a module file, so that `inspect.getsource` finds it, and return its `kernel`."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.kernel
