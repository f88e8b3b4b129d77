"""What the browser tests share: one Chromium and one server of the built book for each file of tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tools.site import chromium, serve


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serve() as address:
        yield address
