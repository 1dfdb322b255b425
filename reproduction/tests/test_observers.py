from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from diw.errors import UsageError
from diw.runs import Recipe, RunSpec
from diw.training import execute, make_observers, with_method
from reproduction import observers
from tests.problems import tiny_split, tiny_training

BOTH = ("subsets", "hidden")
observers.enter()


def observed(folder: Path, names: tuple[str, ...]):
    training = tiny_training(folder, epochs=3)
    training.observers = make_observers(names, training.split, 0)
    training.finish()
    return training


def test_looking_leaves_no_trace(tmp_path: Path) -> None:
    """The network of these tests has batch norm and dropout, which looking could disturb."""
    plain, watched = observed(tmp_path / "plain", ()), observed(tmp_path / "watched", BOTH)
    ours, theirs = load_file(watched.run.model), load_file(plain.run.model)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    for mine, other in zip(watched.run.metrics(), plain.run.metrics(), strict=True):
        same = other.keys() - {"seconds"}
        assert {key: mine[key] for key in same} == {key: other[key] for key in same}


def test_subset_accuracies_are_those_of_the_final_network(tmp_path: Path) -> None:
    training = observed(tmp_path, ("subsets",))
    last, split = training.run.metrics()[-1], training.split
    training.model.eval()
    with torch.no_grad():
        guesses = training.model(split.train.take(torch.arange(len(split.train)))[0]).argmax(1)
    flipped = split.flipped
    assert last["intact_accuracy"] == pytest.approx(
        (guesses == split.train.targets)[~flipped].double().mean().item()
    )
    assert last["mislabelled_accuracy_given"] == pytest.approx(
        (guesses == split.train.targets)[flipped].double().mean().item()
    )
    assert last["mislabelled_accuracy_true"] == pytest.approx(
        (guesses == split.true_labels)[flipped].double().mean().item()
    )


def test_hidden_outputs_give_the_logits_through_the_last_layer(tmp_path: Path) -> None:
    training = observed(tmp_path, ("hidden",))
    kept = training.run.arrays("hidden")
    places = torch.from_numpy(kept["index"])
    assert np.array_equal(kept["true_labels"], training.split.true_labels[places].numpy())
    assert np.array_equal(kept["targets"], training.split.train.targets[places].numpy())
    last = [m for m in training.model.modules() if isinstance(m, torch.nn.Linear)][-1]
    training.model.eval()
    with torch.no_grad():
        logits = training.model(training.split.train.take(places)[0])
        through = last(torch.from_numpy(kept["features"]))
    torch.testing.assert_close(through, logits)


def test_what_cannot_be_observed_is_refused_before_training() -> None:
    with pytest.raises(UsageError, match="observe: unknown 'gradients'; choose from subsets"):
        make_observers(["gradients"], tiny_split(), 0)
    with pytest.raises(UsageError, match="needs simulated label noise"):
        unknown = replace(tiny_split(), flipped=None)
        make_observers(["subsets"], unknown, 0)


def test_a_spec_names_its_observers(tmp_path: Path) -> None:
    spec = with_method(
        RunSpec(
            data="embedded",
            shift="symmetric:0.4",
            trusted=50,
            train_samples=300,
            test_samples=50,
            model="mlp",
            recipe=Recipe(epochs=1),
            observe=BOTH,
        ),
        "uniform",
    )
    assert RunSpec.from_json(spec.as_json()) == spec
    run = execute(spec, tmp_path)
    assert run.arrays("hidden")["features"].shape == (300, 128)
    assert 0 <= run.metrics()[0]["intact_accuracy"] <= 1
