import pytest
import torch
from torch import nn
from torch.nn import functional

import diw
from diw.errors import UsageError
from diw.methods import make
from diw.objective import Objective
from diw.step.batch import Batch
from tests.contract.cases import Case, batch, objective_of, pretrained, whole_train
from tests.networks import noisy_network, plain_network, samples

TRUSTED = samples(20, seed=2)


def losses_of(network: nn.Module, data) -> torch.Tensor:
    with torch.no_grad():
        return functional.cross_entropy(network(data[0]), data[1], reduction="none")


def mean_one(weights: torch.Tensor) -> torch.Tensor:
    return weights / weights.mean()


def test_diw1_estimates_with_the_frozen_network_whatever_is_trained() -> None:
    objective = objective_of(Case("diw1-l"), network=noisy_network, dtype=torch.float64)
    optimizer = torch.optim.SGD(objective.network.parameters(), lr=0.5)
    for _ in range(3):
        objective(batch(dtype=torch.float64)).loss.backward()
        optimizer.step()
    weights = objective.weigh(batch(dtype=torch.float64)).train
    frozen = pretrained(noisy_network(torch.float64)).eval()
    data = samples(20, seed=2, dtype=torch.float64)
    match = diw.kmm(losses_of(frozen, whole_train(torch.float64)), losses_of(frozen, data))
    torch.testing.assert_close(weights, mean_one(match.weights))


@pytest.mark.parametrize("method", ["diw3-l", "diw3-f"])
def test_diw3_starts_from_the_pretrained_network(method) -> None:
    objective = objective_of(Case(method), network=noisy_network)
    objective.prepare()
    expected = pretrained(noisy_network()).state_dict()
    for name, value in objective.network.state_dict().items():
        assert torch.equal(value, expected[name])


def test_diw2_f_matches_hidden_outputs_by_class_with_the_whole_sets_priors() -> None:
    model = plain_network(torch.float64)
    objective = objective_of(Case("diw2-f"), model=model, dtype=torch.float64)
    part = slice(0, 40)
    weights = objective.weigh(batch(part, torch.float64)).train
    x, y = whole_train(torch.float64)
    x_trusted, y_trusted = samples(20, seed=2, dtype=torch.float64)
    expected = torch.zeros(40, dtype=torch.float64)
    with torch.no_grad():
        z, z_trusted = model[:2](x[part]), model[:2](x_trusted)
    for label in range(3):
        ours, theirs = y[part] == label, y_trusted == label
        v = mean_one(diw.kmm(z[ours], z_trusted[theirs]).weights)
        expected[ours] = v * theirs.double().mean() / (y == label).double().mean()
    torch.testing.assert_close(weights, mean_one(expected))


def test_features_may_be_those_of_a_named_layer() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3))
    x = whole_train()[0]

    def weights(**fields):
        objective = Objective(model, make("diw2-f", {"partition": False, **fields}), TRUSTED)
        objective.start_epoch(2)
        return objective.weigh(batch()).train

    for fields, representation in (({}, model[:4]), ({"layer": "2"}, model[:2])):
        with torch.no_grad():
            match = diw.kmm(representation(x), representation(TRUSTED[0]))
        torch.testing.assert_close(weights(**fields), mean_one(match.weights), rtol=1e-3, atol=1e-3)
    with pytest.raises(UsageError, match="layer: the network has no submodule 'fc'"):
        weights(layer="fc")


def test_loss_methods_say_that_they_need_trusted_labels() -> None:
    objective = Objective(plain_network(), make("diw", {"warmup": 0}), (TRUSTED[0], None))
    with pytest.raises(UsageError, match="trusted: this method needs labels"):
        objective(whole_train())


@pytest.mark.parametrize("method", ["diw1-f", "diw2-f", "diw3-f"])
def test_many_classes_in_small_batches_are_refused_with_the_reason(method) -> None:
    x, y = torch.randn(400, 4), torch.arange(400) % 100
    objective = Objective(
        plain_network(classes=100),
        method,
        (x, y),
        train=(x, y),
        pretrain=lambda _: plain_network(classes=100),
    )
    with pytest.raises(UsageError) as caught:
        objective((x[:256], y[:256]))
    message = str(caught.value)
    assert message.startswith(f"{method}: mini-batches of 256 from 100 classes hold 2.6")
    assert "siw-f" in message
    assert "batch size of 300" in message


def test_a_class_that_is_not_in_the_trusted_batch_comes_from_the_cache() -> None:
    # One trusted sample per batch: two of the three classes are always absent from it.
    fields = {"warmup": 0}
    objective = Objective(plain_network(), make("diw2-f", fields), TRUSTED, trusted_batch_size=1)
    unmatched = []
    for _ in range(20):
        weights = objective.weigh(batch())
        assert (weights.train.sum() - len(weights.train)).abs() < 1e-3
        unmatched.append(weights.metrics["share_unmatched"])
    assert unmatched[0] > 0
    assert unmatched[-1] == 0


def test_class_priors_without_the_training_set_are_counted_as_they_come_by() -> None:
    objective = Objective(plain_network(), "diw2-f", TRUSTED)
    objective.start_epoch(1)
    x, y = whole_train()
    for part in (slice(0, 24), slice(24, 48)):  # the warm-up counts already
        objective((x[part], y[part]))
    objective.start_epoch(2)
    ours = objective.weigh((x, y)).train
    whole = Objective(plain_network(), "diw2-f", TRUSTED, train=(x, y))
    whole.start_epoch(2)
    torch.testing.assert_close(ours, whole.weigh((x, y)).train)


@pytest.mark.parametrize(
    ("method", "epochs"), [("diw", 1), ("diw2-f", 1), ("diw1-l", 0), ("diw3-f", 0)]
)
def test_warm_up_is_diw2s(method, epochs) -> None:
    objective = objective_of(Case(method))
    for epoch in (1, 2):
        objective.start_epoch(epoch)
        assert bool((objective.weigh(batch()).train == 1).all()) == (epoch <= epochs)


def test_warm_up_by_steps_for_a_loop_without_epochs() -> None:
    method = make("diw", {"warmup": 0, "warmup_steps": 2})
    objective = Objective(plain_network(), method, TRUSTED)
    plain = []
    for _ in range(4):
        plain.append(bool((objective.weigh(batch()).train == 1).all()))
        objective.after_step()
    assert plain == [True, True, False, False]


def test_momentum_blends_with_the_samples_last_weight() -> None:
    blended, fresh = (
        objective_of(Case("diw", {"momentum": momentum}), dtype=torch.float64)
        for momentum in (0.8, 0.0)
    )
    first = fresh.weigh(batch(dtype=torch.float64)).train
    torch.testing.assert_close(blended.weigh(batch(dtype=torch.float64)).train, first)
    for made in (blended, fresh):  # the network moves
        with torch.no_grad():
            made.network[2].weight.mul_(3)
    order = torch.randperm(48, generator=torch.Generator().manual_seed(0))
    second = fresh.weigh(batch(order, torch.float64)).train
    actual = blended.weigh(batch(order, torch.float64)).train
    expected = mean_one(0.8 * first[order].float().double() + 0.2 * second)
    torch.testing.assert_close(actual, expected)


def noisy(noise: float, epoch: int = 100) -> Objective:
    made = objective_of(Case("diw", {"noise": noise, "normalise": False}), dtype=torch.float64)
    made.start_epoch(epoch)
    return made


def factors(objective: Objective, data: Batch) -> torch.Tensor:
    """The noise of one step, from the numbers that `Step.normal` gives."""
    return (1 + 0.4 * objective.step(data).normal("noise on weights")).clamp(min=0)


def test_noise_multiplies_each_matched_weight_by_a_random_factor() -> None:
    data = batch(dtype=torch.float64)
    plain, expected = noisy(0.0).weigh(data).train, factors(noisy(0.4), data)
    assert torch.equal(noisy(0.4).weigh(data).train, plain * expected)
    assert 0.2 < float(expected.std()) < 0.6
    assert float(expected.mean()) == pytest.approx(1, abs=0.2)


def test_noise_is_drawn_by_epoch_and_sample() -> None:
    objective, whole = noisy(0.4), batch(dtype=torch.float64)
    first = factors(objective, whole)
    objective.after_step()
    part = torch.tensor([7, 3, 30])  # in another step, order and batch
    assert torch.equal(factors(objective, batch(part, torch.float64)), first[part])
    assert not torch.equal(factors(noisy(0.4, epoch=101), whole), first)


def test_noise_without_index_or_epochs_is_drawn_by_step() -> None:
    whole = batch(dtype=torch.float64)
    without_index = Batch(whole.inputs, whole.targets)
    without_epochs = Objective(plain_network(), make("diw", {"noise": 0.4}), TRUSTED)
    for objective, data in ((noisy(0.4), without_index), (without_epochs, whole)):
        first, again = factors(objective, data), factors(objective, data)
        objective.after_step()
        assert torch.equal(first, again)
        assert not torch.equal(factors(objective, data), first)


def test_without_normalisation_the_weights_are_the_matchs_own() -> None:
    objective = objective_of(Case("diw", {"normalise": False}), dtype=torch.float64)
    weights = objective.weigh(batch(dtype=torch.float64)).train
    network = objective.network
    data = samples(20, seed=2, dtype=torch.float64)
    match = diw.kmm(losses_of(network, whole_train(torch.float64)), losses_of(network, data))
    torch.testing.assert_close(weights, match.weights)
    assert weights.mean() != pytest.approx(1, abs=1e-6)


def test_momentum_needs_the_samples_places() -> None:
    objective = objective_of(Case("diw", {"momentum": 0.5}))
    with pytest.raises(UsageError, match="batch: this method remembers each sample"):
        objective(Batch(*whole_train()))


@pytest.mark.parametrize(
    ("method", "fields", "message"),
    [
        ("diw", {"momentum": 1.0}, r"diw.momentum: must be in \[0, 1\), and is 1.0"),
        ("diw", {"noise": -0.1}, "diw.noise: must not be negative"),
        ("diw", {"warmup": -1}, "diw.warmup: must not be negative"),
        ("diw", {"warmup_steps": -1}, "diw.warmup_steps: must not be negative"),
        ("diw", {"bound": 0.5}, "diw.bound: must be at least 1"),
        ("diw", {"ridge": 0}, "diw.ridge: must be positive"),
        ("diw", {"slack": -0.1}, "diw.slack: must be finite and not negative"),
        ("diw", {"solver": "osqp"}, "diw.solver: choose exact, stopped, cvxopt, not 'osqp'"),
        ("diw", {"gamma": "wide"}, "diw.gamma: unknown rule 'wide'"),
        ("diw", {"gamma": -1.0}, "diw.gamma: must be positive"),
        ("diw2-f", {"features": "loss"}, "diw2-f.features: choose hidden or output, not 'loss'"),
        ("siw-l", {"pretraining": 0}, "siw-l.pretraining: must be at least 1, and is 0"),
        ("diw1-l", {"pretraining": 0}, "diw1-l.pretraining: must be at least 1"),
    ],
)
def test_bad_fields(method, fields, message) -> None:
    with pytest.raises(UsageError, match=message):
        make(method, fields)
