"""The film of the documentation, with 20 samples and trainings of a few steps."""

import shutil
from pathlib import Path

import pytest
from PIL import Image

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]


def test_the_film_is_made_with_the_commands_of_the_page(tmp_path: Path) -> None:
    from scripts.film_trust import film

    found = film(tmp_path, rows=300, samples=20, steps=5)
    steps = ["draw", "check", "read", "verified", "uniform", "trusted", "audit"]
    assert list(found["seconds"]) == steps
    assert list(found["accuracy"]) == ["verified", "uniform", "trusted"]
    assert found["wrong"][1] < 0.45 < found["wrong"][2]  # 40% wrong, and 5% of the answers
    assert Image.open(tmp_path / "trust.webp").n_frames == 20
    assert (tmp_path / "audit" / "audit.html").exists()
