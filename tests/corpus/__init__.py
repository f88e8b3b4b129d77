"""Kernels that the tracer, numba's simulator, the per-thread oracle and NumPy must agree on.

Each module is one topic and lists its `CASES`; `all_cases()` finds them. A case is a kernel with a launch, inputs,
a NumPy reference and, where the arithmetic of the memory model predicts them, the costs of its lines.
"""

from tests.corpus.case import Case, Fill, Prediction, all_cases, arange, dyadic, poisoned

__all__ = ["Case", "Fill", "Prediction", "all_cases", "arange", "dyadic", "poisoned"]
