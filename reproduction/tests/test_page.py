"""The files of an experiment and the page that shows them."""

from pathlib import Path

from reproduction.page import read_section, write_page, write_sheet
from reproduction.results import read_sheet


def test_files_and_page(folder: Path) -> None:
    section = write_sheet(read_sheet(folder))
    names = {path.name for path in folder.iterdir()}
    assert {"test.md", "test.tex", "test.csv", "test.json", "experiment.json"} == names
    write_page([section], folder / "report.html")
    page = (folder / "report.html").read_text()
    assert "About &lt;it&gt;." in page
    assert "<strong>88.29 (0.18)</strong>" in page
    assert "python -m reproduction test" in page
    before = (folder / "report.html").read_bytes()
    again = read_section(read_sheet(folder))
    assert again is not None
    write_page([again], folder / "report.html")
    assert (folder / "report.html").read_bytes() == before
