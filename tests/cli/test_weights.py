import json
import threading
from pathlib import Path

import numpy as np
import pytest

from diw import KMM, kmm, matching
from diw.cli.weights import ESTIMATORS
from diw.matching import ULSIF
from tests.own_data import diw, refused, three_classes


def weigh(train: str, trusted: str, *more: object, out: str = "w.npy") -> tuple[np.ndarray, str]:
    """The weights that the command writes, and all that it says."""
    code, text, error = diw("weights", train, trusted, "--out", out, *map(str, more))
    assert code == 0, error
    return read(Path(out)), text + error


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def losses() -> tuple[np.ndarray, np.ndarray]:
    """Losses of training and trusted rows, in a.npy and b.npy, too."""
    generator = np.random.default_rng(0)
    train, trusted = generator.exponential(2, 300), generator.exponential(0.5, 80)
    np.save("a.npy", train)
    np.save("b.npy", trusted)
    return train, trusted


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    """Rows of three columns, the trusted ones in b.npy, too."""
    generator = np.random.default_rng(1)
    train, trusted = (
        generator.normal(0, [1, 100, 1e-3], (200, 3)),
        generator.normal(0.5, 1, (50, 3)),
    )
    np.save("b.npy", trusted)
    return train, trusted


def read(path: Path) -> np.ndarray:
    match path.suffix:
        case ".csv":
            assert path.read_text().startswith("weight\n")
            return np.loadtxt(path, skiprows=1)
        case ".npy":
            return np.load(path)
        case ".npz":
            return np.load(path)["weights"]
        case _:
            parquet = pytest.importorskip("pyarrow.parquet")
            return parquet.read_table(path)["weight"].to_numpy()


@pytest.mark.parametrize("ending", [".csv", ".npy", ".npz", ".parquet"])
def test_one_column_is_matched_as_it_is(ending: str, losses) -> None:
    found, text = weigh("a.npy", "b.npy", "--json", "s.json", out=f"w{ending}")
    expected = kmm(*losses).weights
    np.testing.assert_array_equal(found, expected)
    said = json.loads(Path("s.json").read_text())
    assert said["status"] == "optimal"
    assert said["largest"] == expected.max()
    assert said["share_at_zero"] == (expected == 0).mean()
    assert 0 < said["effective_sample_size"] <= 1
    assert "effective sample size" in text


def test_a_csv_of_one_column_is_the_same_problem(losses) -> None:
    for name, values in zip(("a", "b"), losses, strict=True):
        np.savetxt(f"{name}.csv", values, fmt="%.17g", header="loss", comments="")
    expected = kmm(*losses).weights
    np.testing.assert_allclose(weigh("a.csv", "b.csv")[0], expected, rtol=0, atol=1e-2)


def test_columns_are_standardised_by_the_training_rows_unless_raw(table) -> None:
    train, trusted = table
    np.savez("a.npz", X=train)
    np.savez("b.npz", X=trusted)
    mean, scale = train.mean(0), train.std(0)
    expected = kmm((train - mean) / scale, (trusted - mean) / scale, ridge=0.1)
    found, _ = weigh("a.npz", "b.npz", "--ridge", "0.1")
    np.testing.assert_allclose(found, expected.weights, atol=1e-8)
    raw, _ = weigh("a.npz", "b.npz", "--ridge", "0.1", "--raw")
    np.testing.assert_array_equal(raw, kmm(train, trusted, ridge=0.1).weights)


def test_a_table_with_words_and_missing_values() -> None:
    generator = np.random.default_rng(2)
    for name, rows in (("a", 60), ("b", 30)):
        lines = ["x,colour,label"]
        for i in range(rows):
            x = "" if i % 20 == 3 else f"{generator.normal():.4f}"
            lines.append(f"{x},{generator.choice(['red', 'blue'])},{i}")
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
    found, said = weigh("a.csv", "b.csv", "--drop", "label", out="w.csv")
    assert "3 of 60 values missing" in said
    assert len(found) == 60
    assert "trusted rows" in said


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_an_option(name: str, losses) -> None:
    found, _ = weigh("a.npy", "b.npy", "--estimator", name, "--json", "s.json")
    kinds = {
        "kmm": KMM(),
        "stopped": KMM(solver="stopped"),
        "ulsif": ULSIF(),
    }
    direct = (kinds.get(name) or getattr(matching, name.capitalize())()).fit(*losses)
    np.testing.assert_array_equal(found, direct.weights_)
    said = json.loads(Path("s.json").read_text())
    assert said["status"] == direct.status_
    assert said["penalty"] == getattr(direct, "penalty_", None)
    assert ("error_bound" in said) == (name in ("kmm", "stopped"))


@pytest.mark.parametrize(("old", "new"), [("el", "entropy"), ("kliep", "logistic")])
def test_an_old_estimator_says_what_is_taken_instead(old: str, new: str, losses) -> None:
    found, said = weigh("a.npy", "b.npy", "--estimator", old)
    instead, nothing = weigh("a.npy", "b.npy", "--estimator", new)
    words = f"{old} goes with diw 1.0; {new} is taken instead"
    assert words in said
    assert words not in nothing
    np.testing.assert_array_equal(found, instead)


def test_weights_that_are_all_zero_are_a_failure() -> None:
    """An estimator by a local model has nothing to say where no training row is near."""
    np.save("a.npy", np.linspace(0, 1, 60))
    np.save("b.npy", np.linspace(500, 501, 40))
    for name in ("ulsif", "isotonic"):
        code, out, error = diw("weights", "a.npy", "b.npy", "--out", "w.npy", "--estimator", name)
        assert (code, out) == (1, "")
        assert "all weights are zero" in error
        assert not Path("w.npy").exists()
    _, said = weigh("a.npy", "b.npy", "--estimator", "logistic")
    assert "100% of the trusted values lie where there are no training values" in said
    assert "so that no weights stand for them" in said


def test_a_bound_below_one_is_said(losses) -> None:
    assert "bound: 0.5 is below one" in weigh("a.npy", "b.npy", "--bound", 0.5)[1]


def test_a_large_training_set_is_read_in_parts(losses, monkeypatch) -> None:
    monkeypatch.setattr("diw.data.values.PART_VALUES", 100)
    found, said = weigh("a.npy", "b.npy", "--in-parts")
    assert "optimal" in said
    assert "rows                   300" in said
    np.testing.assert_allclose(found, kmm(*losses).weights, atol=1e-5)
    monkeypatch.setattr("diw.cli.weights.LARGE", 100)
    again, said = weigh("a.npy", "b.npy")
    assert "passes" in said  # by itself, for a large file
    np.testing.assert_array_equal(again, found)


def test_a_folder_is_standardised_like_a_file(table) -> None:
    Path("folder").mkdir()
    train, _ = table
    np.save("folder/1.npy", train[:70])
    np.save("folder/2.npy", train[70:])
    np.save("a.npy", train)
    parts, whole = (
        weigh(name, "b.npy", "--ridge", "0.1", "--rank", "150")[0] for name in ("folder", "a.npy")
    )
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-6)


def test_a_cluster_with_a_killed_worker_gives_what_one_process_gives(
    tmp_path, cluster, monkeypatch
) -> None:
    """A real scheduler and two workers, of which one is killed while it works."""
    from diw.data.values import find_parts, with_places
    from diw.matching import kmm_blocks
    from diw.training.many import spread_on_cluster

    monkeypatch.setattr("diw.data.values.PART_VALUES", 5_000)
    generator = np.random.default_rng(0)
    np.save("train.npy", generator.exponential(1, 100_000))
    np.save("trusted.npy", generator.exponential(0.5, 1000))
    trusted, found = np.load("trusted.npy"), {}
    victim = cluster.add_worker()
    cluster.add_worker()
    with spread_on_cluster(cluster.address) as spread:
        passes = 0

        def killing(function, parts, *arguments):
            nonlocal passes
            passes += 1
            if passes == 4:
                threading.Timer(0.02, victim.kill).start()
            return spread(function, parts, *arguments)

        for name, way in (("one", map), ("cluster", killing)):
            parts = with_places(
                find_parts(Path("train.npy").absolute()), Path(f"{name}.npy").absolute()
            )
            found[name] = kmm_blocks(parts, trusted, map=way)
    assert victim.wait(10) == -9
    assert found["cluster"].objective == pytest.approx(found["one"].objective, rel=1e-10)
    ours, theirs = (np.load(f"{name}.npy") for name in found)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)
    files = [str(tmp_path / name) for name in ("train.npy", "trusted.npy", "w.npy")]
    by_command, _ = weigh(*files[:2], "--scheduler", cluster.address, out=files[2])
    np.testing.assert_allclose(by_command, theirs, rtol=0, atol=1e-4)


def test_labels_are_not_matched_unless_asked_for() -> None:
    rng = np.random.default_rng(0)
    for name, share in (("a.csv", 0.2), ("b.csv", 0.8)):
        x, y = rng.normal(size=60), (rng.random(60) < share).astype(int)
        lines = [f"{one:.5f},{-one:.3f},{label}" for one, label in zip(x, y, strict=True)]
        Path(name).write_text("\n".join(["x,z,label", *lines]) + "\n")
        Path(f"other-{name}").write_text("\n".join(["x,z,status", *lines]) + "\n")
    plain, said = weigh("a.csv", "b.csv")
    assert "left out" in said
    assert np.array_equal(plain, weigh("a.csv", "b.csv", "--drop", "label")[0])
    assert not np.allclose(plain, weigh("a.csv", "b.csv", "--keep-label")[0])
    assert np.array_equal(plain, weigh("other-a.csv", "other-b.csv", "--label", "status")[0])
    line = refused("weights", "a.csv", "b.csv", "--out", "w.npy", "--label", "no")
    assert "--label: " in line
    assert "has no column 'no'" in line


def test_labels_are_not_matched_in_parts_either() -> None:
    pyarrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    rng = np.random.default_rng(0)
    Path("folder").mkdir()
    for name, n, share in (("folder/a.parquet", 90, 0.2), ("b.parquet", 40, 0.8)):
        columns = {"x": rng.normal(share, 1, n), "z": rng.normal(size=n)}
        columns["label"] = (rng.random(n) < share).astype(int)
        parquet.write_table(pyarrow.table(columns), name)
    parquet.write_table(pyarrow.table({"x": [0.0, 1.0], "z": [1.0, 0.0]}), "c.parquet")
    options = ("--ridge", "0.1", "--rank", "120")
    parts, said = weigh("folder", "b.parquet", *options)
    assert "left out: it holds the labels; --keep-label matches it" in said
    whole, _ = weigh("folder/a.parquet", "b.parquet", *options)
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-5)
    dropped, _ = weigh("folder", "b.parquet", *options, "--drop", "label")
    kept, _ = weigh("folder", "b.parquet", *options, "--keep-label")
    assert np.array_equal(parts, dropped)
    assert not np.allclose(parts, kept)
    weigh("folder", "c.parquet", *options)  # trusted rows need no labels
    line = refused("weights", "folder", "b.parquet", "--out", "w.npy", "--label", "no")
    assert "has no column 'no'" in line


def test_weights_by_class_need_no_labels_of_the_target() -> None:
    train = three_classes("train.csv", "abc" * 200, 0)
    target = three_classes("target.csv", "aaaaaabbbc" * 50, 1, named=False)
    weights, text = weigh(train, target, "--by-class", "--json", "s.json")
    assert "a: 5" in text
    shares = weights[:3] / 3
    assert np.array_equal(weights, np.tile(weights[:3], 200))
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.1)
    said = json.loads(Path("s.json").read_text())
    assert said["status"] == "optimal"
    assert said["p_value"] > 0.05


def test_weights_by_class_are_ones_where_more_than_the_shares_differs() -> None:
    train = three_classes("train.csv", "abc" * 200, 0)
    moved = three_classes("moved.csv", "abc" * 100, 1, move=2.0, named=False)
    weights, text = weigh(train, moved, "--by-class")
    assert (weights == 1).all()
    assert "more than the class shares differs" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bound", "3"], "--bound: --by-class does not use it"),
        (["--estimator", "entropy"], "--estimator: --by-class does not use it"),
        (["--in-parts"], "by-class: needs all of TRAIN in memory"),
        ([], "class 'c' has 3 rows; 10 or more are needed"),
    ],
)
def test_weights_by_class_refuse_what_they_cannot_do(options: list[str], message: str) -> None:
    train = three_classes("train.csv", "ab" * 20 + "ccc", 0)
    assert message in refused("weights", train, train, "--out", "w.csv", "--by-class", *options)
