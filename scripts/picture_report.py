"""Take the picture of a report page that README and the site show.

    diw compare
    python scripts/picture_report.py runs/compare/report.html docs/images/report.png

Needs a Chromium and Pillow, which brings the picture to 128 colours.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 1040, 1690
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main() -> None:
    """Open the page without a window and keep what it shows."""
    page, picture = (Path(name).resolve() for name in sys.argv[1:3])
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        sys.exit(f"no browser: install one of {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
        options += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}"]
        options += ["--virtual-time-budget=5000", f"--screenshot={picture}"]
        subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True)
    with Image.open(picture) as drawn:
        few = drawn.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)
    print(f"{picture}: {picture.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
