"""Every spec names only what exists, says why, and `paper` is the paper's protocol."""

import re
from dataclasses import fields, replace

import pytest

from diw.data import BENCHMARKS
from diw.errors import UsageError
from diw.methods import methods
from diw.models import MODELS
from diw.runs import Recipe, RunSpec
from diw.shifts import parse_shift
from diw.training import OBSERVERS
from reproduction import observers
from reproduction.catalogue import (
    SCALES,
    Place,
    Rule,
    Scale,
    catalogue,
    find_experiments,
    published,
)
from reproduction.plan import base_spec, plan

observers.enter()
NAMES = list(catalogue())
PAPER = [name for name in NAMES if catalogue()[name].source.startswith("Fang")]


def spec_of(name: str, data: str, shift: str, method: str) -> RunSpec:
    experiment = catalogue()[name]
    entry = next(entry for entry in experiment.entries if entry.label == method)
    return base_spec(experiment.protocol, "paper", Place(data, shift, entry))


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_names_only_what_exists(name: str) -> None:
    experiment = catalogue()[name]
    assert {entry.method for entry in experiment.entries} <= methods().keys()
    assert all(parse_shift(shift).stages or shift == "none" for shift in experiment.shifts)
    assert set(experiment.observe) <= set(OBSERVERS)
    for scale in SCALES:
        assert set(experiment.data[scale]) <= {*BENCHMARKS, "embedded"}
        for place in experiment.places(scale):
            spec = base_spec(experiment.protocol, scale, place)
            assert parse_shift(spec.shift).text == spec.shift
            assert spec.model in MODELS
    labels = {entry.label for entry in experiment.entries}
    for claim in experiment.claims:
        named = {claim.get("method"), *claim.get("rivals", ())} - {None}
        named |= {method for pair in claim.get("pairs", ()) for method in pair}
        named |= {*claim.get("better", ()), *claim.get("worse", ())}
        assert named <= labels


@pytest.mark.parametrize("name", PAPER)
def test_every_value_at_paper_scale_says_where_it_comes_from(name: str) -> None:
    """A section of the paper, its supplement, or the authors' code where the text is open."""
    for rule in catalogue()[name].protocol.rules["paper"]:
        assert re.search(r"Section \d|Supplement A\.\d|[Aa]uthors' (released|solver)", rule.reason)


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_leaves_nothing_of_the_recipe_to_defaults(name: str) -> None:
    """A default of another command may change; a published protocol may not."""
    experiment = catalogue()[name]
    for scale in SCALES:
        for data in experiment.data[scale]:
            for shift in experiment.shifts:
                place = {"data": data, "shift": shift, "method": "diw", "variant": ""}
                rules = [rule for rule in experiment.protocol.rules[scale] if rule.fits(place)]
                said = {key for rule in rules for key in rule.values}
                asked = {field.name for field in fields(Recipe) if "later" not in field.metadata}
                assert asked <= said
                assert {"trusted", "trusted_in_train", "model"} <= said


def test_a_method_that_needs_a_package_is_marked_without_it(monkeypatch) -> None:
    monkeypatch.setattr("reproduction.plan.find_spec", lambda _: None)
    states = {cell.entry.label: cell.state for cell in plan(catalogue()["solver"], "smoke")}
    assert states.pop("stopped by cvxopt") == "absent"
    assert set(states.values()) == {"planned"}
    smoke = plan(catalogue()["label-noise"], "smoke")
    assert {cell.state for cell in smoke} == {"planned"}


def test_the_papers_results_are_all_here() -> None:
    assert len(PAPER) == 7
    sizes = {name: len(plan(catalogue()[name], "paper")) for name in PAPER}
    assert sizes == {
        "label-noise": 3 * 3 * 6,
        "class-prior": 2 * 7,
        "weight-distance": 2 * 3,
        "ablation": 3 * 3 * 9,
        "weights": 3 * 3,
        "tsne": 10,
        "denoising": 6,
    }


def test_every_published_number_stands_beside_a_cell() -> None:
    assert len(published()) == 54 + 14 + 12 + (81 - 9)
    beside = 0
    for experiment in catalogue().values():
        for cell in plan(experiment, "paper"):
            beside += len(cell.published)
            if experiment.published:
                assert (cell.state == "absent") == (not cell.published)
    assert beside == len(published())


def test_published_numbers_agree_where_two_tables_show_the_same() -> None:
    for (table, *place, method), number in published().items():
        if table == "ablation" and method in ("iw", "diw"):
            twin = published()["label-noise", *place, method]
            assert (twin.mean, twin.std) == (number.mean, number.std)
    best = [key for key, number in published().items() if key[0] == "label-noise" and number.best]
    assert [key[1] for key in best if key[4] == "diw"].count("fashion-mnist") == 2


@pytest.mark.parametrize(
    ("data", "shift", "expected"),
    [
        ("fashion-mnist", "pair:0.3", ("sgd", 2e-4, 1e-4, 50.0, "lenet5")),
        ("fashion-mnist", "symmetric:0.5", ("sgd", 3e-4, 1e-4, 50.0, "lenet5")),
        ("cifar-10", "pair:0.3", ("adam", 5e-3, 0.1, 10.0, "resnet32")),
        ("cifar-10", "symmetric:0.4", ("adam", 5e-3, 0.05, 10.0, "resnet32")),
        ("cifar-100", "symmetric:0.4", ("adam", 5e-3, 0.1, 10.0, "resnet32")),
    ],
)
def test_the_papers_label_noise_protocol(data, shift, expected) -> None:
    spec = spec_of("label-noise", data, shift, "diw")
    recipe = spec.recipe
    bound = spec.method_fields["bound"]
    assert (recipe.optimizer, recipe.lr, recipe.weight_decay, bound, spec.model) == expected
    assert (recipe.epochs, recipe.batch_size, recipe.trusted_batch_size) == (400, 256, 256)
    assert (recipe.schedule, recipe.reduction) == ("step:100:0.1", "sum")
    assert (recipe.momentum, recipe.ramp) == (0, 0)
    assert (spec.trusted, spec.trusted_in_train, spec.shift) == (1000, True, shift)
    assert spec.train_samples is None
    assert spec.test_samples is None
    assert spec.method_fields["gamma"] == "quantile:0.01"
    assert spec.method_fields["ridge"] == 1e-5
    pretrained = spec_of("ablation", data, shift, "siw-f")
    assert pretrained.method_fields["pretraining"] == (20 if data == "fashion-mnist" else 50)
    assert pretrained.method_fields["gamma"] == "quantile:0.01"


def test_the_papers_class_prior_protocol() -> None:
    rates = {
        method: spec_of("class-prior", "fashion-mnist", "prior:0.2,100", method).recipe.lr
        for method in ("clean", "uniform", "random", "iw", "reweight", "diw", "truth")
    }
    assert rates.pop("clean") == 1e-3
    assert rates.pop("iw") == 3e-4
    assert set(rates.values()) == {5e-4}
    spec = spec_of("class-prior", "fashion-mnist", "prior:0.2,200", "diw")
    assert (spec.shift, spec.trusted, spec.test_samples) == ("prior:0.2,200,4000", "10/class", 1000)
    assert (spec.method_fields["gamma"], spec.method_fields["bound"]) == ("quantile:0.99", 100.0)
    recipe = spec.recipe
    assert (recipe.schedule, recipe.weight_decay) == ("exponential:0.993", 1e-5)
    assert (recipe.batch_size, recipe.trusted_batch_size) == (256, 100)
    assert (recipe.momentum, recipe.ramp) == (0, 0)


def test_trials_of_all_methods_share_data_noise_and_initialisation(monkeypatch) -> None:
    """Paired by construction: what decides them is the same in every method's spec."""
    monkeypatch.setattr("reproduction.plan.find", lambda _: "here")
    own = {"method", "method_fields", "observe", "seed"}
    for name in ("label-noise", "ablation", "class-prior"):
        settings: dict = {}
        for cell in plan(catalogue()[name], "paper"):
            for spec in cell.specs:
                values = spec.as_json()
                values["lr"] = None  # clean and iw have rates of their own under class-prior shift
                shared = {key: value for key, value in values.items() if key not in own}
                place = (cell.data, cell.shift, cell.variant)
                assert settings.setdefault(place, shared) == shared
            assert [spec.seed for spec in cell.specs] in ([0, 1, 2, 3, 4], [])


def test_results_share_runs_and_what_they_observe(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("reproduction.plan.find", lambda _: "here")
    table = {
        (cell.data, cell.shift, cell.entry.label): cell.specs
        for cell in plan(catalogue()["label-noise"], "paper")
    }
    for name, watched in (("denoising", "subsets"), ("weights", None)):
        for cell in plan(catalogue()[name], "paper"):
            assert cell.specs == table[cell.data, cell.shift, cell.entry.label]
            assert watched is None or all(watched in spec.observe for spec in cell.specs)
    assert table["cifar-10", "symmetric:0.4", "diw"][0].observe == ("hidden", "subsets")
    assert table["cifar-10", "symmetric:0.4", "uniform"][0].observe == ()
    for cell in plan(catalogue()["weight-distance"], "cpu", trials=1):
        twin = next(
            other
            for other in plan(catalogue()["class-prior"], "cpu", trials=1)
            if (other.shift, other.entry) == (cell.shift, cell.entry)
        )
        assert twin.specs[0].run(tmp_path) == cell.specs[0].run(tmp_path)


def test_rivals_are_compared_with_the_runs_of_the_default() -> None:
    def cells(name: str) -> dict:
        planned = plan(catalogue()[name], "cpu")
        return {(cell.shift, cell.variant, cell.entry.label): cell.specs for cell in planned}

    study, rivals = cells("beyond"), cells("beyond-rivals")
    for (shift, variant, label), specs in rivals.items():
        assert [spec.seed for spec in specs] == [0, 1, 2]
        if label in ("remember", "uniform", "truth"):
            assert specs == study[shift, variant, label][:3]
    assert rivals["pair:0.3", "", "adiw"][0].method_fields["gamma"] == "quantile:0.5"


def test_missing_data_are_marked_and_only_smoke_generates_images(monkeypatch) -> None:
    monkeypatch.setattr("reproduction.plan.find", lambda _: None)
    for scale in ("cpu", "paper"):
        cells = plan(catalogue()["label-noise"], scale)
        assert {cell.state for cell in cells} == {"no data"}
        assert not any(cell.specs or cell.synthetic for cell in cells)
        assert "diw data fetch fashion-mnist" in cells[0].reason
    for cell in plan(catalogue()["label-noise"], "smoke"):
        assert cell.synthetic
        assert all(spec.synthetic_ok for spec in cell.specs)
    monkeypatch.setattr("reproduction.plan.find", lambda _: "here")
    real = plan(catalogue()["label-noise"], "smoke")[0]
    assert not real.synthetic
    assert not any(spec.synthetic_ok for spec in real.specs)


def test_rules_apply_in_order_and_unknown_keys_are_refused() -> None:
    protocol = catalogue()["label-noise"].protocol
    entry = catalogue()["label-noise"].entries[-1]
    more = (Rule({"shift": ("pair:*",)}, {"lr": 0.5}, "a test"),)
    changed = replace(protocol, rules={"paper": protocol.rules["paper"] + more})
    pair = Place("fashion-mnist", "pair:0.3", entry)
    assert base_spec(changed, "paper", pair).recipe.lr == 0.5
    symmetric = Place("fashion-mnist", "symmetric:0.4", entry)
    assert base_spec(changed, "paper", symmetric).recipe.lr == 3e-4
    wrong = replace(protocol, rules={"paper": (Rule({}, {"learning_rate": 1}, "a test"),)})
    with pytest.raises(UsageError, match="unknown key learning_rate"):
        base_spec(wrong, "paper", pair)


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_clean_takes_as_many_and_as_long_steps_on_any_trusted_set(scale: Scale) -> None:
    """Or a small trusted set would be compared untrained."""
    experiment = catalogue()["trusted-size"]
    specs = [
        base_spec(experiment.protocol, scale, place)
        for place in experiment.places(scale)
        if place.entry.label == "clean"
    ]
    sizes = [int(spec.trusted or 0) for spec in specs]
    assert sizes == [50, 100, 250, 500, 1000]
    recipes = [spec.recipe for spec in specs]
    steps = [
        -(-size // recipe.trusted_batch_size) for size, recipe in zip(sizes, recipes, strict=True)
    ]
    assert steps == [10] * 5
    lengths = [size * recipe.lr for size, recipe in zip(sizes, recipes, strict=True)]
    assert lengths == pytest.approx([lengths[-1]] * 5)


def test_experiments_by_name() -> None:
    assert [e.name for e in find_experiments(("all",))] == NAMES
    assert [e.name for e in find_experiments(("tsne", "tsne", "ablation"))] == ["tsne", "ablation"]
    with pytest.raises(UsageError, match="unknown result 'tables'; choose all or label-noise"):
        find_experiments(("tables",))
