"""Files of one's own: what comes out, what is said, what is refused."""

import json

import numpy as np
import pytest
import torch

from diw.data import Encoding, load, read_like
from diw.data.arrays import MappedInputs
from diw.data.images import ImageInputs
from diw.data.split import make_split
from diw.errors import UsageError

CSV = "age,colour,income,label\n20,red,1.5,yes\n40,blue,,no\n60,red,2.5,no\n,green,2.0,yes\n"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "train.csv").write_text(CSV)
    return tmp_path / "train.csv"


def everything(data):
    return data.take(torch.arange(len(data)))


def test_npz_images_with_words_as_labels(tmp_path, rng):
    images = rng.integers(0, 256, (20, 16, 16, 3), np.uint8)
    words = np.array(["dog", "cat"] * 10)
    np.savez(tmp_path / "a.npz", X=images, y=words, clean=np.arange(20) < 6)
    bundle = load(tmp_path / "a.npz")
    assert (bundle.name, bundle.kind, bundle.train.classes) == ("a.npz", "image", ("cat", "dog"))
    inputs, targets = everything(bundle.train)
    assert torch.equal(inputs, torch.from_numpy(images).permute(0, 3, 1, 2) / 255)
    assert targets.tolist() == [1, 0] * 10
    split = make_split(bundle, trusted=6, seed=0)
    assert len(split.trusted) + len(split.test) == 6
    assert split.scored_on == "held-out trusted"
    assert split.flipped is None


def test_npz_tables_are_standardised_by_the_training_rows(tmp_path, rng):
    train, test = rng.normal(7, 3, (50, 4)), rng.normal(7, 3, (10, 4))
    train[:, 3] = 5.0
    np.savez(tmp_path / "a.npz", X=train, y=np.arange(50) % 3)
    np.savez(tmp_path / "b.npz", X=test, y=np.arange(10) % 3)
    bundle = load(tmp_path / "a.npz", test=tmp_path / "b.npz")
    scale = train.std(axis=0)
    scale[3] = 1
    for data, raw in ((bundle.train, train), (bundle.test, test)):
        expected = (raw - train.mean(axis=0)) / scale
        np.testing.assert_allclose(everything(data)[0].numpy(), expected, atol=1e-6)
    assert bundle.kind == "table"
    assert bundle.train.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("inputs", "labels"),
    [
        ("X.npy", "y.npy"),
        ("X_train.npy", "y_train.npy"),
        ("my_x.npy", "my_y.npy"),
        ("images.npy", "images.labels.npy"),
    ],
)
def test_npy_files_are_mapped_and_their_labels_found(tmp_path, rng, inputs, labels):
    images = rng.integers(0, 256, (8, 12, 12), np.uint8)
    np.save(tmp_path / inputs, images)
    np.save(tmp_path / labels, np.arange(8) % 2)
    bundle = load(tmp_path / inputs)
    assert isinstance(bundle.train.inputs, MappedInputs)
    assert torch.equal(everything(bundle.train)[0][:, 0], torch.from_numpy(images) / 255)
    if inputs == "X.npy":
        assert load(tmp_path).train.class_counts.tolist() == [4, 4]
    np.save(tmp_path / "others.npy", 1 - np.arange(8) % 2)
    other = load(tmp_path / inputs, label=str(tmp_path / "others.npy"))
    assert other.train.targets.tolist() == [1, 0] * 4


def test_a_mapped_file_is_not_read_into_memory(tmp_path):
    import tracemalloc

    mapped = np.lib.format.open_memmap(
        tmp_path / "X.npy", "w+", np.float32, (4000, 1, 64, 64)
    )  # 64 MB
    mapped.flush()
    del mapped
    np.save(tmp_path / "y.npy", np.arange(4000) % 2)
    tracemalloc.start()
    bundle = load(tmp_path / "X.npy")
    for start in range(0, 4000, 500):
        bundle.train.take(torch.arange(start, start + 10))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32_000_000


def test_csv_is_encoded_and_missing_values_are_said(table):
    bundle = load(table)
    inputs, targets = everything(bundle.train)
    ages = np.array([20, 40, 60, 40.0])  # the missing one is the mean of the others
    spread = np.array([20, 40, 60]).std()
    np.testing.assert_allclose(inputs[:, 0], (ages - 40) / spread, atol=1e-6)
    assert inputs[:, 1:4].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    np.testing.assert_allclose(inputs[1, 4], 0, atol=1e-6)
    assert bundle.train.classes == ("no", "yes")
    assert targets.tolist() == [1, 0, 0, 1]
    said = " ".join(bundle.notes)
    assert "column 'age': 1 of 4 values missing, set to the mean" in said
    assert "column 'income': 1 of 4 values missing" in said


def test_later_files_are_read_as_the_training_file_was(table, tmp_path):
    bundle = load(table)
    encoding = Encoding.from_json(json.loads(json.dumps(bundle.encoding.as_json())))
    assert encoding == bundle.encoding
    # other order, an unseen colour, no labels, a column more
    (tmp_path / "new.csv").write_text("income;colour;age;extra\n1.5;red;20;1\n2;pink;40;2\n")
    rows = read_like(tmp_path / "new.csv", encoding)
    assert rows.targets is None
    taken = rows.inputs.take(torch.arange(2))
    assert torch.equal(taken[0], everything(bundle.train)[0][0])
    assert taken[1, 1:4].tolist() == [0, 0, 0]
    assert any("'colour': 1 of 2 values not in the training data" in note for note in rows.notes)
    assert any("not used: extra" in note for note in rows.notes)
    with pytest.raises(UsageError, match=r"new\.csv"):
        read_like(tmp_path / "new.csv", encoding, need_labels=True)


def test_labels_that_are_not_needed_are_not_looked_at(table, tmp_path):
    encoding = load(table).encoding
    (tmp_path / "new.csv").write_text(
        "age,colour,income,label,clean\n20,red,1,,?\n40,red,1,maybe,2\n"
    )
    rows = read_like(tmp_path / "new.csv", encoding)
    assert rows.targets is None
    assert not any("not used" in note for note in rows.notes)
    with pytest.raises(UsageError, match="the label in row 0 is missing"):
        read_like(tmp_path / "new.csv", encoding, need_labels=True)


def test_parquet_reads_like_csv(table, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "age": pa.array([20, 40, 60, None]),
        "colour": pa.array(["red", "blue", "red", "green"]).dictionary_encode(),
        "income": pa.array([1.5, None, 2.5, 2.0], pa.float32()),
        "label": pa.array(["yes", "no", "no", "yes"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    ours, theirs = load(tmp_path / "train.parquet"), load(table)
    assert torch.equal(everything(ours.train)[0], everything(theirs.train)[0])
    assert ours.train.targets.tolist() == theirs.train.targets.tolist()
    assert ours.encoding == theirs.encoding
    pq.write_table(pa.table({"label": [1, 2], "x": [[1], [2]]}), tmp_path / "lists.parquet")
    with pytest.raises(UsageError, match="column 'x' has type list"):
        load(tmp_path / "lists.parquet")


def write_images(folder, shapes, mode="RGB"):
    from PIL import Image

    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (*shape, 3), np.uint8)
        Image.fromarray(pixels).convert(mode).save(path)


def test_a_folder_of_images_streams(tmp_path):
    write_images(
        tmp_path / "train",
        {f"{name}/{row}.png": (20, 24) for name in ("cat", "dog") for row in range(3)},
    )
    (tmp_path / "train" / "cat" / "readme.txt").write_text("passed over")
    bundle = load(tmp_path / "train")
    assert isinstance(bundle.train.inputs, ImageInputs)
    assert bundle.train.shape == (3, 20, 24)
    assert bundle.train.classes == ("cat", "dog")
    assert bundle.train.class_counts.tolist() == [3, 3]
    write_images(tmp_path / "new", {"a.png": (20, 24), "b.jpg": (50, 10)})
    rows = read_like(tmp_path / "new", bundle.encoding)
    assert rows.targets is None
    assert [name.rsplit("/", 1)[1] for name in rows.names] == ["a.png", "b.jpg"]
    assert rows.inputs.take(torch.arange(2)).shape == (2, 3, 20, 24)
    one = read_like(tmp_path / "new" / "b.jpg", bundle.encoding)
    assert torch.equal(one.inputs.take(torch.arange(1)), rows.inputs.take(torch.tensor([1])))
    assert one.names == (str(tmp_path / "new" / "b.jpg"),)


def test_images_of_several_sizes_are_resized_and_it_is_said(tmp_path):
    write_images(tmp_path, {"a/1.png": (30, 30), "b/1.png": (40, 20)}, mode="L")
    bundle = load(tmp_path)
    assert bundle.train.shape == (1, 64, 64)
    assert "2 different sizes are resized to 64 x 64" in bundle.notes[0]


def test_broken_images_are_named(tmp_path):
    write_images(tmp_path, {"a/1.png": (30, 30), "b/1.png": (30, 30)})
    whole = (tmp_path / "b" / "1.png").read_bytes()
    (tmp_path / "b" / "1.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"b.1\.png: cannot be decoded"):
        everything(load(tmp_path).train)
    (tmp_path / "b" / "1.png").write_bytes(b"no image")
    with pytest.raises(UsageError, match=r"b.1\.png: not an image"):
        load(tmp_path)
    (tmp_path / "b" / "1.png").unlink()
    with pytest.raises(UsageError, match="holds no images"):
        load(tmp_path)


def test_a_benchmark_takes_trusted_and_test_rows_from_files(tmp_path, rng):
    images = rng.integers(0, 256, (6, 28, 28), np.uint8)
    names = np.array(["Bag", "Coat", "Dress"] * 2)
    np.savez(tmp_path / "t.npz", X=images, y=names)
    bundle = load("embedded", trusted=tmp_path / "t.npz")
    assert bundle.trusted.targets.tolist() == [8, 4, 3] * 2
    assert len(bundle.test) == 2000
    np.savez(tmp_path / "t.npz", X=images, y=np.array(["Hat"] * 6))
    with pytest.raises(UsageError, match="label 'Hat' in row 0 is not a class"):
        load("embedded", trusted=tmp_path / "t.npz")


def test_leaks_are_said_and_refused_for_test(tmp_path, rng):
    train, fresh = rng.normal(size=(40, 3)), rng.normal(size=(10, 3))
    np.savez(tmp_path / "train.npz", X=train, y=np.arange(40) % 2)
    mixed = np.concatenate([train[:4], fresh])
    np.savez(tmp_path / "mixed.npz", X=mixed, y=np.arange(14) % 2)
    np.savez(tmp_path / "fresh.npz", X=fresh, y=np.arange(10) % 2)
    paths = {name: tmp_path / f"{name}.npz" for name in ("train", "mixed", "fresh")}
    trusted = load(paths["train"], trusted=paths["mixed"])
    assert any("4 of 14 trusted rows are also in the training data" in n for n in trusted.notes)
    assert any("leak: trusted rows that are held out" in note for note in trusted.notes)
    assert not load(paths["train"], trusted=paths["fresh"]).notes
    with pytest.raises(UsageError, match="4 of 14 test rows are also in the training data"):
        load(paths["train"], test=paths["mixed"])
    allowed = load(paths["train"], test=paths["mixed"], allow_leaks=True)
    assert any("leak: 4 of 14" in note for note in allowed.notes)
    with pytest.raises(UsageError, match="10 of 10 test rows are also in the trusted data"):
        load(paths["train"], trusted=paths["fresh"], test=paths["fresh"])


def test_classes_without_rows_are_said(tmp_path, rng):
    x = rng.normal(size=(30, 2))
    np.savez(tmp_path / "train.npz", X=x, y=np.array(["a", "b", "c"] * 10))
    np.savez(tmp_path / "trusted.npz", X=x[:4] + 1, y=np.array(["a", "b", "d", "d"]))
    bundle = load(tmp_path / "train.npz", trusted=tmp_path / "trusted.npz")
    assert bundle.train.classes == ("a", "b", "c", "d")
    assert "classes in the trusted data but not in the training data: d" in bundle.notes
    assert "classes in the training data but not in the trusted data: c" in bundle.notes
    np.savez(tmp_path / "test.npz", X=x[:1] + 2, y=np.array(["e"]))
    with pytest.raises(UsageError, match="'e' in row 0 is not a class"):
        load(tmp_path / "train.npz", test=tmp_path / "test.npz")


def test_whole_number_classes_are_ordered_by_value(tmp_path, rng):
    np.savez(tmp_path / "a.npz", X=rng.normal(size=(36, 2)), y=np.arange(36.0) % 12)
    assert load(tmp_path / "a.npz").train.classes == tuple(map(str, range(12)))


WRONG_ARRAYS = {
    "nan": ({"X": np.array([[1.0, np.nan], [1, 2]]), "y": [0, 1]}, "row 0, column 1"),
    "infinite": ({"X": np.array([[1.0, 2], [1, -np.inf]]), "y": [0, 1]}, "row 1, column 1"),
    "rows": ({"X": np.zeros((3, 2)), "y": [0, 1]}, "X has 3 rows, its labels have shape"),
    "shape": ({"X": np.zeros(3), "y": [0, 1, 0]}, "got shape"),
    "empty": ({"X": np.zeros((0, 3)), "y": []}, "got shape"),
    "text": ({"X": np.array([["a"], ["b"]]), "y": [0, 1]}, "must hold numbers"),
    "no X": ({"Z": np.zeros((2, 2)), "y": [0, 1]}, "no array X"),
    "no y": ({"X": np.zeros((2, 2))}, "no labels found"),
    "one class": ({"X": np.zeros((2, 2)), "y": [1, 1]}, "at least 2"),
    "halves": ({"X": np.zeros((2, 2)), "y": [0.5, 1]}, "0.5 in row 0 is not a class"),
    "a key": ({"X": np.zeros((50, 2)), "y": np.arange(50)}, "is this the label"),
    "objects": ({"X": np.array([[1, None]]), "y": [0]}, "never unpickled"),
    "clean": ({"X": np.zeros((2, 2)), "y": [0, 1], "clean": [0, 7]}, "true or false"),
    "wide": ({"X": np.full((2, 4, 4), 300), "y": [0, 1]}, "0..255"),
    "huge": ({"X": np.full((2, 4), 1e200), "y": [0, 1]}, "beyond"),
    "blank": ({"X": np.zeros((2, 2)), "y": ["a", " "]}, "row 1 is missing"),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_wrong_arrays_get_one_line_with_the_file_and_the_place(tmp_path, name):
    arrays, message = WRONG_ARRAYS[name]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UsageError, match=message) as error:
        load(tmp_path / "a.npz")
    assert "a.npz" in str(error.value)
    assert "\n" not in str(error.value)


WRONG_TABLES = {
    "no label": ("a,b\n1,2\n", "say which column is the label; columns are a, b"),
    "ragged": ("a,label\n1,x\n1,2,3\n", "line 3 has 3 cells, the header 2"),
    "twice": ("a,a,label\n1,2,3\n", "two columns are named 'a'"),
    "empty": ("", "first line must name"),
    "no rows": ("a,label\n", "no rows"),
    "missing label": ("a,label\n1,x\n2,\n", "label in row 1 is missing"),
    "no features": ("label\nx\ny\n", "no column besides the label"),
    "infinite": ("a,label\n1,x\ninf,y\n", "inf in row 1 of column 'a'"),
    "clean": ("a,label,clean\n1,x,1\n2,y,maybe\n", "'clean' must hold 1 or 0"),
    "quote": ('a,label\n"1,x\n', "not a CSV"),
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_wrong_tables_get_one_line_with_the_file_and_the_place(tmp_path, name):
    content, message = WRONG_TABLES[name]
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(UsageError, match=message) as error:
        load(tmp_path / "a.csv")
    assert "a.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_wrong_later_tables_are_refused_by_place(table, tmp_path):
    encoding = load(table).encoding
    (tmp_path / "new.csv").write_text("age,colour,income\nold,red,1\n")
    with pytest.raises(UsageError, match="'old' in row 0 of column 'age' is not a number"):
        read_like(tmp_path / "new.csv", encoding)
    (tmp_path / "new.csv").write_text("age,colour\n1,red\n")
    with pytest.raises(UsageError, match="lacks the columns 'income'"):
        read_like(tmp_path / "new.csv", encoding)
    np.savez(tmp_path / "new.npz", X=np.zeros((2, 3)))
    with pytest.raises(UsageError, match=r"new\.npz: expected rows like the training data's"):
        read_like(tmp_path / "new.npz", encoding)


def test_keys_are_left_out_and_it_is_said(tmp_path):
    lines = "".join(f"name {row},{row},{row % 2}\n" for row in range(150))
    (tmp_path / "a.csv").write_text(f"name,size,y\n{lines}")
    bundle = load(tmp_path / "a.csv")
    assert bundle.train.shape == (1,)
    assert "column 'name' has 150 different values; it is not used" in bundle.notes[0]


def test_unreadable_paths_say_what_is_readable(tmp_path):
    (tmp_path / "a.xlsx").touch()
    np.savez(tmp_path / "a.npz", X=np.zeros((4, 2)), y=np.arange(4) % 2)
    with pytest.raises(UsageError, match="readable are"):
        load(tmp_path / "a.xlsx")
    with pytest.raises(UsageError, match=r"there is no '.*absent\.csv'"):
        load(tmp_path / "absent.csv")
    with pytest.raises(UsageError, match=r"absent\.csv: no such file"):
        load(tmp_path / "a.npz", trusted=tmp_path / "absent.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no images"):
        load(tmp_path / "empty")
    np.save(tmp_path / "X.npy", np.zeros((2, 2)))
    with pytest.raises(UsageError, match="no labels found"):
        load(tmp_path / "X.npy")
    with pytest.raises(UsageError, match="no such file of labels"):
        load(tmp_path / "X.npy", label=str(tmp_path / "nowhere.npy"))


def test_float_images_are_taken_as_they_are_and_it_is_said(tmp_path, rng):
    images = rng.normal(size=(6, 3, 10, 10))
    np.savez(tmp_path / "a.npz", X=images, y=np.arange(6) % 2)
    bundle = load(tmp_path / "a.npz")
    np.testing.assert_allclose(everything(bundle.train)[0], images, atol=1e-6)
    assert "taken as they are" in bundle.notes[0]


def test_whole_numbers_written_as_floats_are_one_class(tmp_path):
    rows = "".join(f"{i}.5,{1 + i % 2}.0\n" for i in range(20))
    (tmp_path / "train.csv").write_text("x,label\n" + rows)
    (tmp_path / "trusted.csv").write_text("x,label\n" + rows.replace(".0\n", "\n"))
    bundle = load(str(tmp_path / "train.csv"), trusted=str(tmp_path / "trusted.csv"))
    assert bundle.train.classes == ("1", "2")
