"""Which intrinsics a kernel uses, and so which GPUs can run it."""

from __future__ import annotations

from typing import Any

from lanewise.ptx.declare import DECLARED


def intrinsics_of(kernel: Any) -> frozenset[str]:
    """The names of `lanewise.ptx` in a kernel, and in the device functions that it calls.

    >>> from lanewise import ptx
    >>> def copy(src, dst):
    ...     ptx.store4(dst, 0, *ptx.load4(src, 0))
    >>> sorted(intrinsics_of(copy))
    ['load4', 'store4']
    """
    found: set[str] = set()
    seen: set[Any] = set()
    left = [kernel]
    while left:
        function = left.pop()
        plain = getattr(function, "py_func", function)
        if plain in seen:
            continue
        seen.add(plain)
        names = plain.__code__.co_names
        found |= set(names) & set(DECLARED)
        cells = [cell.cell_contents for cell in plain.__closure__ or ()]
        for value in (*cells, *(plain.__globals__.get(name) for name in names)):
            if hasattr(value, "py_func"):
                left.append(value)
            found |= {name for name, entry in DECLARED.items() if entry.function is value}
    return frozenset(found)
