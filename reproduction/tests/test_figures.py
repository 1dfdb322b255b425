"""Figures show the records' numbers, say why a panel is empty, and are the same every time."""

from pathlib import Path

import numpy as np
import pytest

from diw.runs import Run
from reproduction.figures import (
    accuracy_curves,
    denoising_curves,
    final_weights,
    project,
    trusted_size_drawing,
    tsne_drawing,
    weight_drawing,
)
from reproduction.results import read_sheet
from reproduction.style import CLASSES, METHODS, look
from reproduction.tests.factory import cell, trials, write_experiment, write_run

matplotlib = pytest.importorskip("matplotlib")


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_curves_are_means_with_a_band_and_empty_panels_say_why(tmp_path: Path) -> None:
    names = trials(tmp_path / "runs", "diw", (80, 84))
    other = {"shift": "pair:0.3", "state": "no data", "reason": "not here"}
    cells = [cell("diw", names), cell("uniform"), cell("diw", **other), cell("uniform", **other)]
    elsewhere = {"data": "cifar-10"}
    cells += [cell("diw", **elsewhere), cell("diw", names, shift="pair:0.3", **elsewhere)]
    cells += [cell("uniform", shift=shift, **elsewhere) for shift in ("symmetric:0.4", "pair:0.3")]
    drawing = accuracy_curves(read_sheet(write_experiment(tmp_path, cells)))
    first, second, third, fourth = drawing.figure.axes
    assert first.get_title() == "0.4 symmetric"
    (line,) = first.lines
    assert line.get_xdata().tolist() == [1, 2]
    assert line.get_ydata().tolist() == pytest.approx([84, 82])
    assert line.get_color() == METHODS["diw"][0]
    (band,) = first.collections
    spread = np.std([80, 84], ddof=1)
    edges = band.get_paths()[0].get_extents()
    assert (edges.y0, edges.y1) == (pytest.approx(82 - spread), pytest.approx(84 + spread))
    assert fourth.lines
    assert not second.lines
    assert not third.lines
    assert len(first.get_yticks()) > 1  # an empty neighbour takes no ticks away
    assert texts(drawing.figure) == ["no data", "not run"]
    assert "2 trials" in drawing.caption


def test_a_part_of_an_experiment_is_drawn_without_the_panels_of_the_rest(tmp_path: Path) -> None:
    names = trials(tmp_path / "runs", "diw", (80, 84))
    rest = [("fashion-mnist", "pair:0.3"), ("cifar-10", "symmetric:0.4"), ("cifar-10", "pair:0.3")]
    cells = [cell("diw", data=data, shift=shift) for data, shift in rest]
    part = accuracy_curves(read_sheet(write_experiment(tmp_path, [cell("diw", names), *cells])))
    assert [axes.get_title() for axes in part.figure.axes] == ["0.4 symmetric"]
    nothing = accuracy_curves(read_sheet(write_experiment(tmp_path, cells[1:])))
    assert texts(nothing.figure) == ["not run"] * 2


def test_denoising_has_four_curves(tmp_path: Path) -> None:
    rows = {
        "mislabelled_accuracy_given": [0.4, 0.1],
        "mislabelled_accuracy_true": [0.2, 0.7],
        "intact_accuracy": [0.5, 0.9],
    }
    run = write_run(tmp_path / "runs", seed=0, accuracies=[0.5, 0.6], rows=rows)
    drawing = denoising_curves(read_sheet(write_experiment(tmp_path, [cell("diw", [run])])))
    ends = [line.get_ydata()[-1] for line in drawing.figure.axes[0].lines]
    assert ends == pytest.approx([90, 10, 70, 60])


def test_weights_of_the_final_epoch_by_group(tmp_path: Path) -> None:
    flipped = np.array([False, True, False, True])
    run = write_run(
        tmp_path / "runs",
        seed=0,
        accuracies=[0.5],
        weights=[1.5, 0.25, 2.0, np.nan],
        samples={"flipped": flipped},
    )
    groups = final_weights(Run(tmp_path / "runs" / run))
    assert groups["intact"].tolist() == [1.5, 2.0]
    assert groups["mislabelled"].tolist() == [0.25]  # the other one was not seen
    cells = [cell("diw", [run]), cell("iw")]
    sheet = read_sheet(write_experiment(tmp_path, cells))
    drawing = weight_drawing(sheet, sheet.settings[0])
    assert drawing.name == "test-fashion-mnist-0.4-symmetric"
    assert texts(drawing.figure) == ["not run", "not run"]


def test_tsne_tells_far_classes_apart(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = (20 * np.eye(3)[labels] + rng.normal(size=(60, 3))).astype(np.float32)
    run = write_run(
        tmp_path / "runs",
        seed=0,
        accuracies=[0.5],
        hidden={"features": features, "true_labels": labels},
    )
    places, kept = project(Run(tmp_path / "runs" / run))
    assert (kept == labels).all()
    centres = np.array([places[labels == label].mean(axis=0) for label in range(3)])
    nearest = np.linalg.norm(places[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == labels).all()
    assert project(Run(tmp_path / "runs" / run))[0].tolist() == places.tolist()
    cells = [cell("diw", [run]), cell("iw")]
    sheet = read_sheet(write_experiment(tmp_path, cells))
    drawing = tsne_drawing(sheet, sheet.settings[0])
    assert len(drawing.figure.axes[0].collections[0].get_offsets()) == 60
    assert texts(drawing.figure) == ["not run"]


def test_trusted_sizes_are_the_axis(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cells = [
        cell("diw", trials(runs, "diw", finals, trusted=size), variant=f"{size:,} trusted")
        for size, finals in ((50, (70, 72)), (1000, (88, 89)))
    ]
    drawing = trusted_size_drawing(read_sheet(write_experiment(tmp_path, cells)))
    (axes,) = drawing.figure.axes
    assert axes.lines[0].get_xdata().tolist() == [50, 1000]
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([71, 88.5])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["50", "1,000"]


def test_files_are_the_same_every_time_and_leave_the_users_style_alone(tmp_path: Path) -> None:
    names = trials(tmp_path / "runs", "diw", (80, 84))
    sheet = read_sheet(write_experiment(tmp_path, [cell("diw", names)]))
    size = matplotlib.rcParams["font.size"]
    written: list[list[bytes]] = []
    for _ in range(2):
        png = accuracy_curves(sheet).save(tmp_path)
        written.append([png.read_bytes(), png.with_suffix(".pdf").read_bytes()])
    assert written[0] == written[1]
    assert matplotlib.rcParams["font.size"] == size


def test_no_two_methods_look_alike() -> None:
    names = ["clean", "uniform", "random", "iw", "reweight", "diw", "truth"]
    names += ["siw-f", "siw-l", "diw1-f", "diw2-f", "diw3-f", "diw1-l", "diw3-l"]
    assert len({look(name, names) for name in names}) == 14
    assert len(set(CLASSES)) == 10


@pytest.mark.parametrize("methods", [("diw",), ("diw", *(f"a variant {n}" for n in range(7)))])
def test_the_legend_stays_inside_the_figure(methods, tmp_path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    runs = tmp_path / "runs"
    cells = [cell(m, trials(runs, "diw", (80, 84), method_fields={"of": m})) for m in methods]
    figure = accuracy_curves(read_sheet(write_experiment(tmp_path, cells))).figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (legend,) = figure.legends
    extent = legend.get_window_extent(canvas.get_renderer())
    assert 0 <= extent.x0 < extent.x1 <= figure.bbox.width
    assert len(legend.get_texts()) == len(methods)
