"""Every kind of data that can be drawn from: what is named, known and shown of a row."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diw.errors import UsageError
from diw.trust import items as module
from diw.trust import read_items
from diw.trust.items import text_column
from diw.trust.page import PAGE
from tests.own_data import done, write_images, write_npz
from tests.trust.made import write_table


def test_a_table_is_shown_without_its_label(tmp_path: Path) -> None:
    write_table(tmp_path / "x.csv", 30)
    found = read_items(str(tmp_path / "x.csv"), "kind")
    shown = found.show([3, 1])
    assert shown.columns == ["size", "word"]
    assert [row[1] for row in shown.cells] == ["=1+1"] * 2
    assert found.places([3]) == [(str(tmp_path / "x.csv"), 3)]
    assert text_column(shown) is None
    assert text_column(shown, "word") == 1
    with pytest.raises(
        UsageError, match="text: there is no column 'words'; columns are size, word"
    ):
        text_column(shown, "words")


def test_parquet_is_the_same_as_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    write_table(tmp_path / "x.csv", 30)
    pandas.read_csv(tmp_path / "x.csv").to_parquet(tmp_path / "x.parquet")
    one, two = (read_items(str(tmp_path / name), "kind") for name in ("x.csv", "x.parquet"))
    assert one.contents(range(30)) == two.contents(range(30))
    assert one.show([4]).cells[0][1] == two.show([4]).cells[0][1]


def test_a_long_column_is_a_text(tmp_path: Path) -> None:
    lines = "".join(f'{row},"{"long words " * 10}, {row}",{row % 2}\n' for row in range(30))
    (tmp_path / "x.csv").write_text("number,text,label\n" + lines)
    assert text_column(read_items(str(tmp_path / "x.csv"), None).show([1, 2])) == 1


def test_arrays_of_numbers_and_of_images(tmp_path: Path, monkeypatch) -> None:
    write_npz(tmp_path / "x.npz", 20, 0)
    assert read_items(str(tmp_path / "x.npz"), None).show([0, 5]).columns == list("01234")
    pixels = np.random.default_rng(0).integers(0, 255, (20, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "i.npz", X=pixels, y=np.arange(20) % 2)
    uri = read_items(str(tmp_path / "i.npz"), None).show([7]).images[0]
    image = Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    assert (np.asarray(image) == pixels[7]).all()
    pixels = np.random.default_rng(0).integers(0, 255, (20, 200, 150), dtype=np.uint8)
    np.savez(tmp_path / "l.npz", X=pixels, y=np.arange(20) % 2)
    found = read_items(str(tmp_path / "l.npz"), None)
    image = Image.open(io.BytesIO(base64.b64decode(found.show([7]).images[0].partition(",")[2])))
    assert image.size == (150, 200)
    monkeypatch.setattr(module, "BYTES", 20_000)
    assert len(found.show([7]).images[0]) < 27_000


def test_images_are_upright_and_fit_into_a_page(tmp_path: Path, monkeypatch) -> None:
    write_images(tmp_path / "photos", 5, 0)
    tall = Image.effect_noise((600, 300), 90)
    exif = tall.getexif()
    exif[0x0112] = 6
    tall.save(tmp_path / "photos" / "bar" / "turned.jpg", exif=exif)
    found = read_items(str(tmp_path / "photos"), None)
    place = [Path(file).name for file, _ in found.places(range(len(found)))].index("turned.jpg")
    uri = found.show([place]).images[0]
    assert uri.startswith("data:image/jpeg")
    image = Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    assert image.size == (256, 512)
    monkeypatch.setattr(module, "BYTES", 20_000)
    assert len(found.show([place]).images[0]) < 27_000
    monkeypatch.setattr(module, "BYTES", 10)
    with pytest.raises(UsageError, match="do not fit into a page; draw fewer at once"):
        found.show([place])


def test_of_a_folder_only_the_images_that_are_drawn_are_read(tmp_path: Path, monkeypatch) -> None:
    write_images(tmp_path / "photos", 30, 0)
    opened: list[Path] = []
    read, open_image = Path.read_bytes, module.open_image
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or read(path))
    monkeypatch.setattr(module, "open_image", lambda path: opened.append(path) or open_image(path))
    done("trust", "draw", tmp_path / "photos", "-n", "8", "--out", tmp_path / "check")
    images = {path for path in opened if path.suffix == ".png"}
    assert len(images) == 8
    page = (tmp_path / "check" / PAGE).read_text()
    assert len(re.findall("data:image/png", page)) == 8
