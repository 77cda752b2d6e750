"""The page in a browser: opened, waited for, looked at."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from ...waiting import patiently, until

PICTURES = Path(__file__).resolve().parents[3] / "docs" / "pictures"
DESK, PHONE = (1100, 900), (375, 800)


def pictures(own: Path) -> Path:
    """Where pictures are drawn: a test's own folder, or docs/pictures if `STREAMGAUGE_PICTURES=1` is set."""
    return PICTURES if os.environ.get("STREAMGAUGE_PICTURES") else own


class Tab:
    """One tab of the browser, of a size and a colour scheme."""

    def __init__(self, browser: Any, site: str) -> None:
        self._browser, self._site = browser, site
        if not browser.current_url.startswith(site):
            # The page of a server that is gone asks it on and on, and the browser complains of that.
            browser.get("about:blank")
        self.complaints()  # those of an earlier test may have come after its end
        self.browser = browser

    def open(self, path: str, size: tuple[int, int] = DESK, scheme: str = "light") -> Tab:
        """Go to a path, and wait until all panels were drawn once."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._do("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._do("Emulation.setEmulatedMedia", {"features": features})
        patiently(f"opening {path}", lambda: self._browser.get(self._site + path))
        self._browser.execute_script("localStorage.clear()")
        self.drawn()
        return self

    def drawn(self) -> None:
        """Wait until the panels were drawn once."""
        until(lambda: self.run("return document.getElementById('main').dataset.drawn"))

    def run(self, script: str, *given: Any) -> Any:
        """What a script gives in the page."""
        return self._browser.execute_script(script, *given)

    def text(self, selector: str) -> list[str]:
        """The text of each element that a selector finds."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)

    def panel(self, title: str) -> str:
        """All text of a panel."""
        result = [text for text in self.text(".panel") if text.split("\n")[0].strip() == title]
        assert len(result) == 1, f"{title}: {result}"
        return result[0]

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element that a selector finds, with this text if any."""
        script = (
            "const [where, text] = arguments;"
            "const found = [...document.querySelectorAll(where)]"
            ".find(e => !text || e.innerText.trim() === text);"
            "if (found) found.dispatchEvent(new MouseEvent('click', {bubbles: true})); return Boolean(found)"
        )
        assert self.run(script, selector, text), f"nothing to click: {selector} {text}"

    def press(self, key: str) -> None:
        """A key, as from a keyboard."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37}
        for kind in ("rawKeyDown", "keyUp"):
            more = {"text": "\r"} if key == "Enter" and kind == "rawKeyDown" else {}
            reported = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key], **more}
            self._do("Input.dispatchKeyEvent", {"type": "keyDown" if more else kind, **reported})

    def picture(self, path: Path, height: int) -> int:
        """Draw the top of the page into a file of WebP; gives its size in bytes."""
        width = self.run("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        requested = {"captureBeyondViewport": True, "clip": clip, "format": "webp", "quality": 60}
        result = self._do("Page.captureScreenshot", requested)
        return path.write_bytes(base64.b64decode(result["data"]))

    def complaints(self) -> list[str]:
        """What the browser complained of since the last call: errors, what its policy refused."""
        return [line["message"] for line in self._browser.get_log("browser") if line["level"] != "INFO"]

    def _do(self, command: str, given: dict[str, Any]) -> Any:
        return self._browser.execute_cdp_cmd(command, given)
