"""What every test may ask for; a marked test whose need is not met is skipped, and says why."""

import shutil
from functools import cache

import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


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


def find_chromium() -> str | None:
    """The path of an installed Chromium."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
