import os
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from diw.data import load
from diw.data.benchmarks import readers

SCRIPT = Path(__file__).parents[3] / "scripts" / "make_embedded_data.py"


def test_contents_have_the_recorded_checksum():
    assert readers.digest(readers.read_embedded()) == readers.EMBEDDED_SHA256


def test_the_file_stays_within_six_megabytes():
    assert readers.EMBEDDED_FILE.stat().st_size <= 6_000_000


def test_every_class_has_its_share_and_no_image_is_drawn_twice():
    arrays = readers.read_embedded()
    assert np.bincount(arrays["train_labels"]).tolist() == [1000] * 10
    assert np.bincount(arrays["test_labels"]).tolist() == [200] * 10
    assert (np.diff(arrays["train_rows"]) > 0).all()
    assert (np.diff(arrays["test_rows"]) > 0).all()


def test_load_gives_clean_images_between_zero_and_one():
    bundle = load()
    assert (bundle.name, bundle.kind) == ("embedded", "image")
    assert (len(bundle.train), len(bundle.test)) == (10_000, 2_000)
    assert bundle.train.shape == (1, 28, 28)
    assert bundle.train.classes[9] == "Ankle boot"
    assert bundle.clean.all()
    images, labels = bundle.train.take(torch.arange(500))
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    assert images.min() == 0
    assert images.max() == 1
    raw = torch.from_numpy(readers.read_embedded()["train_images"][:500])
    assert torch.equal(images, (raw / 255).unsqueeze(1))


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("DIW_DATA"), reason="needs the original files in $DIW_DATA")
def test_the_script_makes_the_same_arrays_from_the_original_files():
    folder = Path(os.environ["DIW_DATA"]) / "fashion-mnist"
    arrays = runpy.run_path(str(SCRIPT))["subset"](folder)
    assert readers.digest(arrays) == readers.EMBEDDED_SHA256
