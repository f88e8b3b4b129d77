"""What one submission may take of time and memory, also where the tracer's own limits should fail."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

GRACE_S = 10.0  # from the end of a submission's time to the end of the process that marks it


class OutOfTime(BaseException):
    """The time is used up. No `except Exception` on the way stops it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in what runs longer; where the system has no timer for it, `watched` alone does."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """End this process if what runs takes longer than `seconds` and `GRACE_S`, even inside a C function."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        faulthandler.dump_traceback_later(seconds + GRACE_S, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


@cache
def limit_memory(n_bytes: int) -> bool:
    """Let this process take `n_bytes` more than it has now; False where the system cannot limit that."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError, ValueError):
        return False
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    allowed = pages * resource.getpagesize() + n_bytes
    if most != resource.RLIM_INFINITY:
        allowed = min(allowed, most)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, most))
    return True
