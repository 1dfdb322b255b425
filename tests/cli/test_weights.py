import json
import threading
from pathlib import Path

import numpy as np
import pytest

import diw
from diw.cli.main import main
from diw.cli.weights import ESTIMATORS
from diw.matching import ULSIF


def run(*arguments: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit:
        main(["weights", *map(str, arguments)])
    captured = capsys.readouterr()
    return int(exit.value.code or 0), captured.out, captured.err


@pytest.fixture
def losses() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.exponential(2, 300), generator.exponential(0.5, 80)


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    return generator.normal(0, [1, 100, 1e-3], (200, 3)), generator.normal(0.5, 1, (50, 3))


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
def test_one_column_is_matched_as_it_is(ending: str, losses, tmp_path: Path, capsys) -> None:
    np.save(tmp_path / "a.npy", losses[0])
    np.save(tmp_path / "b.npy", losses[1])
    out, summary = tmp_path / f"w{ending}", tmp_path / "s.json"
    code, text, _ = run(
        tmp_path / "a.npy", tmp_path / "b.npy", "--out", out, "--json", summary, capsys=capsys
    )
    assert code == 0
    expected = diw.kmm(*losses).weights
    np.testing.assert_array_equal(read(out), expected)
    said = json.loads(summary.read_text())
    assert said["status"] == "optimal"
    assert said["largest"] == expected.max()
    assert said["share_at_zero"] == (expected == 0).mean()
    assert 0 < said["effective_sample_size"] <= 1
    assert "effective sample size" in text


def test_a_csv_of_one_column_is_the_same_problem(losses, tmp_path: Path, capsys) -> None:
    for name, values in zip(("a", "b"), losses, strict=True):
        np.savetxt(tmp_path / f"{name}.csv", values, fmt="%.17g", header="loss", comments="")
    code, _, _ = run(
        tmp_path / "a.csv", tmp_path / "b.csv", "--out", tmp_path / "w.npy", capsys=capsys
    )
    assert code == 0
    np.testing.assert_allclose(
        np.load(tmp_path / "w.npy"), diw.kmm(*losses).weights, rtol=0, atol=1e-2
    )


def test_columns_are_standardised_by_the_training_rows_unless_raw(table, tmp_path, capsys) -> None:
    train, trusted = table
    np.savez(tmp_path / "a.npz", X=train)
    np.savez(tmp_path / "b.npz", X=trusted)
    files = (tmp_path / "a.npz", tmp_path / "b.npz", "--out", tmp_path / "w.npy")
    assert run(*files, "--ridge", "0.1", capsys=capsys)[0] == 0
    mean, scale = train.mean(0), train.std(0)
    expected = diw.kmm((train - mean) / scale, (trusted - mean) / scale, ridge=0.1)
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), expected.weights, atol=1e-8)
    assert run(*files, "--ridge", "0.1", "--raw", capsys=capsys)[0] == 0
    expected = diw.kmm(train, trusted, ridge=0.1)
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), expected.weights)


def test_a_table_with_words_and_missing_values(tmp_path: Path, capsys) -> None:
    generator = np.random.default_rng(2)
    for name, rows in (("a", 60), ("b", 30)):
        lines = ["x,colour,label"]
        for i in range(rows):
            x = "" if i % 20 == 3 else f"{generator.normal():.4f}"
            lines.append(f"{x},{generator.choice(['red', 'blue'])},{i}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "w.csv"
    code, text, error = run(
        tmp_path / "a.csv", tmp_path / "b.csv", "--out", out, "--drop", "label", capsys=capsys
    )
    assert code == 0
    assert "3 of 60 values missing" in error
    assert len(read(out)) == 60
    assert "trusted rows" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.npy", "none.npy"], ["none.npy", "no such file"]),
        (["a.npy", "b.csv"], ["b.csv", "both as arrays"]),
        (["a.npy", "wide.npy"], ["wide.npy", "shape"]),
        (["nan.npy", "a.npy"], ["nan.npy", "NaN"]),
        (["text.npy", "a.npy"], ["text.npy", "readable"]),
        (["empty.npy", "a.npy"], ["empty.npy", "no rows"]),
        (["a.npy", "a.npy", "--bound", "0"], ["--bound"]),
        (["a.npy", "a.npy", "--penalty", "3"], ["--penalty", "kmm does not use it"]),
        (["a.npy", "a.npy", "--estimator", "ulsif", "--ridge", "3"], ["--ridge", "ulsif does not"]),
        (["a.npy", "a.npy", "--estimator", "isotonic", "--gamma", "3"], ["--gamma", "isotonic"]),
        (["a.npy", "a.npy", "--ridge", "-1"], ["--ridge"]),
        (["a.npy", "a.npy", "--gamma", "0"], ["--gamma"]),
        (["a.npy", "a.npy", "--gamma", "wide"], ["--gamma", "median"]),
        (["a.npy", "a.npy", "--rank", "0"], ["--rank"]),
        (["a.npy", "a.npy", "--out", "a.npy"], ["--out", "a.npy", "read by this command"]),
        (["b.csv", "b.csv", "--drop", "no"], ["--drop", "'no'", "x"]),
        (["a.npy", "a.npy", "--out", "w.txt"], ["--out", "w.txt", ".csv"]),
    ],
)
def test_wrong_use_is_one_line_and_nothing_is_written(
    arguments, words, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(9.0))
    np.save("wide.npy", np.ones((4, 3)))
    np.save("nan.npy", np.array([1.0, np.nan]))
    np.save("empty.npy", np.empty(0))
    Path("text.npy").write_text("not an array")
    Path("b.csv").write_text("x\n1\n")
    before = set(tmp_path.iterdir())
    if "--out" not in arguments:
        arguments = [*arguments, "--out", "w.npy"]
    code, out, error = run(*arguments, capsys=capsys)
    assert code == 2, error
    assert out == ""
    assert len(error.strip().splitlines()) == 1
    for word in words:
        assert word in error
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_an_option(name: str, losses, tmp_path: Path, capsys) -> None:
    np.save(tmp_path / "a.npy", losses[0])
    np.save(tmp_path / "b.npy", losses[1])
    out, summary = tmp_path / "w.npy", tmp_path / "s.json"
    arguments = [tmp_path / "a.npy", tmp_path / "b.npy", "--out", out, "--json", summary]
    code, *_ = run(*arguments, "--estimator", name, capsys=capsys)
    assert code == 0
    kinds = {"kmm": diw.KMM(), "stopped": diw.KMM(solver="stopped"), "ulsif": ULSIF()}
    direct = (kinds.get(name) or getattr(diw.matching, name.capitalize())()).fit(*losses)
    np.testing.assert_array_equal(np.load(out), direct.weights_)
    said = json.loads(summary.read_text())
    assert said["status"] == direct.status_
    assert said["penalty"] == getattr(direct, "penalty_", None)
    assert ("error_bound" in said) == (name in ("kmm", "stopped"))


@pytest.mark.parametrize(("old", "new"), [("el", "entropy"), ("kliep", "logistic")])
def test_an_old_estimator_says_what_is_taken_instead(old, new, losses, tmp_path, capsys) -> None:
    np.save(tmp_path / "a.npy", losses[0])
    np.save(tmp_path / "b.npy", losses[1])
    found = []
    for name in (old, new):
        arguments = [tmp_path / "a.npy", tmp_path / "b.npy", "--out", tmp_path / "w.npy"]
        code, _, error = run(*arguments, "--estimator", name, capsys=capsys)
        assert code == 0
        assert (f"{old} goes with diw 1.0; {new} is taken instead" in error) == (name == old)
        found.append(np.load(tmp_path / "w.npy"))
    np.testing.assert_array_equal(*found)


def test_weights_that_are_all_zero_are_a_failure(tmp_path, capsys) -> None:
    """An estimator by a local model has nothing to say where no training row is near."""
    np.save(tmp_path / "a.npy", np.linspace(0, 1, 60))
    np.save(tmp_path / "b.npy", np.linspace(500, 501, 40))
    files = [tmp_path / "a.npy", tmp_path / "b.npy", "--out", tmp_path / "w.npy"]
    for name in ("ulsif", "isotonic"):
        code, out, error = run(*files, "--estimator", name, capsys=capsys)
        assert (code, out) == (1, "")
        assert "all weights are zero" in error
        assert not (tmp_path / "w.npy").exists()
    code, out, error = run(*files, "--estimator", "logistic", capsys=capsys)
    assert code == 0
    assert "100% of the trusted values lie where there are no training values" in out
    assert "so that no weights stand for them" in error


def test_a_bound_below_one_is_said(losses, tmp_path: Path, capsys) -> None:
    np.save(tmp_path / "a.npy", losses[0])
    np.save(tmp_path / "b.npy", losses[1])
    arguments = [tmp_path / "a.npy", tmp_path / "b.npy", "--out", tmp_path / "w.npy"]
    code, _, said = run(*arguments, "--bound", 0.5, capsys=capsys)
    assert code == 0
    assert "bound: 0.5 is below one" in said
    assert len(said.splitlines()) == 1


def test_a_large_training_set_is_read_in_parts(tmp_path, capsys, losses, monkeypatch) -> None:
    monkeypatch.setattr("diw.data.values.PART_VALUES", 100)
    for name, values in zip(("train.npy", "trusted.npy"), losses, strict=True):
        np.save(tmp_path / name, values)
    files = [tmp_path / "train.npy", tmp_path / "trusted.npy", "--out"]
    code, out, _ = run(*files, tmp_path / "w.npy", "--in-parts", capsys=capsys)
    assert code == 0
    assert "optimal" in out
    assert "rows                   300" in out
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), diw.kmm(*losses).weights, atol=1e-5)
    monkeypatch.setattr("diw.cli.weights.LARGE", 100)
    code, out, _ = run(*files, tmp_path / "v.npy", capsys=capsys)
    assert "passes" in out  # by itself, for a large file
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), np.load(tmp_path / "w.npy"))


def test_a_folder_is_standardised_like_a_file(tmp_path, capsys, table) -> None:
    train, trusted = table
    folder = tmp_path / "folder"
    folder.mkdir()
    np.save(folder / "1.npy", train[:70])
    np.save(folder / "2.npy", train[70:])
    np.save(tmp_path / "train.npy", train)
    np.save(tmp_path / "trusted.npy", trusted)
    options = ["--ridge", "0.1", "--rank", "150", "--out"]
    for source, name in ((folder, "w.npy"), (tmp_path / "train.npy", "v.npy")):
        arguments = [source, tmp_path / "trusted.npy", *options, tmp_path / name]
        assert run(*arguments, capsys=capsys)[0] == 0
    np.testing.assert_allclose(
        np.load(tmp_path / "w.npy"), np.load(tmp_path / "v.npy"), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--out", "w.csv"], "--out: rows that are read in parts get weights as .npy, not w.csv"),
        (
            ["--out", "w.npy", "--estimator", "chi2"],
            "--estimator: chi2 needs all of TRAIN in memory",
        ),
        (["--out", "w.npy", "--rank", "0"], "--rank: must be at least 1, not 0"),
    ],
)
def test_wrong_use_in_parts(tmp_path, capsys, losses, monkeypatch, more, words) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("train.npy", losses[0])
    np.save("trusted.npy", losses[1])
    code, _, error = run("train.npy", "trusted.npy", "--in-parts", *more, capsys=capsys)
    assert code == 2
    assert words in error
    assert not Path("w.npy").exists()


def test_a_cluster_with_a_killed_worker_gives_what_one_process_gives(
    tmp_path, capsys, cluster, monkeypatch
) -> None:
    """A real scheduler and two workers, of which one is killed while it works."""
    from diw.data.values import find_parts, with_places
    from diw.matching import kmm_blocks
    from diw.training.many import spread_on_cluster

    monkeypatch.setattr("diw.data.values.PART_VALUES", 20_000)
    generator = np.random.default_rng(0)
    np.save(tmp_path / "train.npy", generator.exponential(1, 400_000))
    np.save(tmp_path / "trusted.npy", generator.exponential(0.5, 1000))
    trusted, found = np.load(tmp_path / "trusted.npy"), {}
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
            parts = with_places(find_parts(tmp_path / "train.npy"), tmp_path / f"{name}.npy")
            found[name] = kmm_blocks(parts, trusted, map=way)
    assert victim.wait(10) == -9
    assert found["cluster"].objective == pytest.approx(found["one"].objective, rel=1e-10)
    ours, theirs = (np.load(tmp_path / f"{name}.npy") for name in found)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)
    files = [tmp_path / "train.npy", tmp_path / "trusted.npy", "--out", tmp_path / "w.npy"]
    code, _, _ = run(*files, "--scheduler", cluster.address, capsys=capsys)
    assert code == 0
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), theirs, rtol=0, atol=1e-4)


def test_labels_are_not_matched_unless_asked_for(tmp_path: Path, capsys) -> None:
    rng = np.random.default_rng(0)
    names = {}
    for name, share in (("a.csv", 0.2), ("b.csv", 0.8)):
        x, y = rng.normal(size=60), (rng.random(60) < share).astype(int)
        lines = [f"{one:.5f},{-one:.3f},{label}" for one, label in zip(x, y, strict=True)]
        names[name] = tmp_path / name
        names[name].write_text("\n".join(["x,z,label", *lines]) + "\n")
        (tmp_path / f"other-{name}").write_text("\n".join(["x,z,status", *lines]) + "\n")
    out = tmp_path / "w.npy"

    def weights(*arguments: object, prefix: str = "") -> tuple[np.ndarray, str]:
        files = (tmp_path / f"{prefix}{name}" for name in ("a.csv", "b.csv"))
        code, _, said = run(*files, "--out", out, *arguments, capsys=capsys)
        assert code == 0, said
        return np.load(out), said

    plain, said = weights()
    assert "left out" in said
    assert np.array_equal(plain, weights("--drop", "label")[0])
    assert not np.allclose(plain, weights("--keep-label")[0])
    assert np.array_equal(plain, weights("--label", "status", prefix="other-")[0])
    code, _, error = run(*names.values(), "--out", out, "--label", "no", capsys=capsys)
    assert code == 2
    assert "--label: " in error
    assert "has no column 'no'" in error


def test_labels_are_not_matched_in_parts_either(tmp_path: Path, capsys) -> None:
    pyarrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    rng = np.random.default_rng(0)
    for name, n, share in (("folder/a.parquet", 90, 0.2), ("b.parquet", 40, 0.8)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        columns = {"x": rng.normal(share, 1, n), "z": rng.normal(size=n)}
        columns["label"] = (rng.random(n) < share).astype(int)
        parquet.write_table(pyarrow.table(columns), tmp_path / name)
    parquet.write_table(pyarrow.table({"x": [0.0, 1.0], "z": [1.0, 0.0]}), tmp_path / "c.parquet")
    out = tmp_path / "w.npy"

    def weights(train: str, trusted: str, *more: str) -> tuple[np.ndarray, str]:
        options = ("--out", out, "--ridge", "0.1", "--rank", "120", *more)
        code, _, said = run(tmp_path / train, tmp_path / trusted, *options, capsys=capsys)
        assert code == 0, said
        return np.load(out), said

    parts, said = weights("folder", "b.parquet")
    assert "left out: it holds the labels; --keep-label matches it" in said
    whole, _ = weights("folder/a.parquet", "b.parquet")
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-5)
    assert np.array_equal(parts, weights("folder", "b.parquet", "--drop", "label")[0])
    assert not np.allclose(parts, weights("folder", "b.parquet", "--keep-label")[0])
    weights("folder", "c.parquet")  # trusted rows need no labels
    files = (tmp_path / "folder", tmp_path / "b.parquet", "--out", out)
    code, _, error = run(*files, "--label", "no", capsys=capsys)
    assert code == 2
    assert "has no column 'no'" in error
