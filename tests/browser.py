"""Headless Chromium, for pages that a script clicks through and writes into what it saw."""

import html
import json
import re
import shutil
import subprocess

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=300000",
]
WATCH = "window.onerror = (message) => { window.failed = message; };"
"""To be run before a page's own script."""


def seen_in_browser(address, folder):
    """The JSON that the page's script has put into the element `seen` in the end."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    assert browser, f"This test needs one of {', '.join(_BROWSERS)}."
    options = [*_OPTIONS, f"--user-data-dir={folder / 'user'}", "--dump-dom", address]
    done = subprocess.run([browser, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', done.stdout)[1]))
    assert found["error"] is None, found["error"]
    return found
