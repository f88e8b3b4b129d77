"""What every test may ask for; a marked test whose need is not met is skipped, and says why."""

from functools import cache

import pytest

from tools.site import CHROMIUM_NAMES, find_chromium


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
