"""One server with two apps, and one browser, for all tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import serving
from ...waiting import patiently
from .shown import sensors, yard

_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root, in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    # Every address but the server's is nobody's: what the page fetched from elsewhere would fail.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@pytest.fixture(scope="session")
def shown() -> Any:
    """The apps and tables of `shown`, as a service with routes."""
    apps, tables = zip(sensors(), yard())
    return Service({name: table for some in tables for name, table in some.items()}), list(apps)


@pytest.fixture(scope="session")
def site(shown: Any) -> Iterator[str]:
    """The address of a server that shows them."""
    service, apps = shown
    with serving(service, routes=page_routes(service, apps), open_to_all=OPEN_TO_ALL) as server:
        yield server.url


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, Debian's own; the tests skip where there is none."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is in the extra dev")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(
            "no browser is here: the page's tests need Chromium and its driver (Debian: chromium-driver)"
        )
    options = selenium.ChromeOptions()
    options.binary_location = program
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    result = patiently(
        "Chromium's start",
        lambda: selenium.Chrome(options=options, service=selenium.chrome.service.Service(driver)),
    )
    result.set_script_timeout(600)
    result.set_page_load_timeout(600)
    # Selenium's own patience with its driver is 120 seconds.
    result.command_executor.client_config.timeout = 900
    yield result
    result.quit()
