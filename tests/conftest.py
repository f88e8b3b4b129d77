"""What every test may ask for; a marked test whose need is not met is skipped, and says why."""

from functools import cache
from typing import Any

import pytest

from tools.site import CHROMIUM_NAMES, find_chromium

# Each test of these files goes to the worker that is free: they take long and share nothing.
SPREAD = ("tests/kernels/test_compile.py",)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadscope` a file's tests, and a notebook's cells, stay on one worker; the spread ones come last."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    scheduler: Any = LoadScopeScheduling(config, log)
    by_file = scheduler._split_scope
    scheduler._split_scope = lambda test: test if test.startswith(SPREAD) else by_file(test)
    return scheduler


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker, missing in (("gpu", missing_gpu), ("browser", missing_browser)):
            if item.get_closest_marker(marker) and (reason := missing()):
                item.add_marker(pytest.mark.skip(reason=reason))


@cache
def missing_gpu() -> str:
    """Why tests marked gpu cannot run; '' where they can."""
    try:
        from numba import cuda

        return "" if cuda.is_available() else "no NVIDIA GPU is available to numba"
    except Exception as error:  # a broken driver must not stop the tests that need none
        return f"numba.cuda cannot be used: {error}"


@cache
def missing_browser() -> str:
    """Why tests marked browser cannot run; '' where they can."""
    return "" if find_chromium() else f"no Chromium is installed (looked for {', '.join(CHROMIUM_NAMES)})"
