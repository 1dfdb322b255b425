import pytest
import torch
from torch.nn import functional

import diw
from diw.errors import UsageError
from diw.objective import Objective
from tests.contract.cases import Case, N, batch, objective_of, pretrained, whole_train
from tests.networks import noisy_network, plain_network, samples

TRUSTED = samples(20, seed=2)


def weights_of(method: str, fields=None, **options) -> torch.Tensor:
    """Of the whole training set in one batch: the scale to mean one is all that is lost."""
    return (
        objective_of(Case(method, fields or {}), dtype=torch.float64, **options)
        .weigh(batch(dtype=torch.float64))
        .train
    )


def by_class(z_train, y_train, z_trusted, y_trusted) -> torch.Tensor:
    """The definition, written out: one match per class, times the ratio of the class's shares."""
    weights = torch.zeros(len(y_train), dtype=torch.float64)
    for label in range(3):
        ours, theirs = y_train == label, y_trusted == label
        v = diw.kmm(z_train[ours], z_trusted[theirs]).weights
        weights[ours] = v / v.mean() * theirs.double().mean() / ours.double().mean()
    return weights / weights.mean()


def data():
    return *whole_train(torch.float64), *samples(20, seed=2, dtype=torch.float64)


def test_iw_matches_the_raw_inputs_of_each_class() -> None:
    torch.testing.assert_close(weights_of("iw"), by_class(*data()))


def test_siw_f_matches_the_hidden_outputs_of_the_pretrained_network_by_class() -> None:
    x_train, y_train, x_trusted, y_trusted = data()
    network = pretrained(noisy_network(torch.float64)).eval()
    with torch.no_grad():
        expected = by_class(network[:-1](x_train), y_train, network[:-1](x_trusted), y_trusted)
    torch.testing.assert_close(weights_of("siw-f", network=noisy_network), expected)


def test_siw_l_matches_the_losses_of_the_pretrained_network() -> None:
    x_train, y_train, x_trusted, y_trusted = data()
    network = pretrained(noisy_network(torch.float64)).eval()
    with torch.no_grad():
        ours = functional.cross_entropy(network(x_train), y_train, reduction="none")
        theirs = functional.cross_entropy(network(x_trusted), y_trusted, reduction="none")
    expected = diw.kmm(ours, theirs).weights
    actual = weights_of("siw-l", network=noisy_network)
    torch.testing.assert_close(actual, expected / expected.mean())


def test_weights_stay_when_the_network_moves_and_go_by_index() -> None:
    objective = objective_of(Case("siw-l"))
    first = objective.weigh(batch()).train
    with torch.no_grad():
        for parameter in objective.network.parameters():
            parameter.zero_()
    torch.testing.assert_close(objective.weigh(batch()).train, first)
    part = torch.tensor([7, 3, 30])
    torch.testing.assert_close(objective.weigh(batch(part)).train, first[part] / first[part].mean())


def test_truth_gives_the_true_weights() -> None:
    weights = weights_of("truth")
    wrong = torch.arange(N) % 3 == 0
    assert (weights[wrong] == 0).all()
    assert (weights[~wrong] == 1.5).all()
    with pytest.raises(UsageError, match="truth: the true weights are unknown"):
        Objective(plain_network(), "truth", TRUSTED).weigh(batch())


@pytest.mark.parametrize("method", ["iw", "siw-f", "siw-l"])
def test_what_static_methods_need_is_named(method) -> None:
    with pytest.raises(UsageError, match=rf"train: {method} looks at the whole training set"):
        Objective(plain_network(), method, TRUSTED).weigh(batch())
    with pytest.raises(UsageError, match=rf"batch: {method} has to know each sample"):
        objective_of(Case(method)).weigh(whole_train())


def test_siw_needs_a_way_to_pretrain() -> None:
    objective = Objective(plain_network(), "siw-l", TRUSTED, train=whole_train())
    with pytest.raises(UsageError, match="pretrain: siw-l needs it"):
        objective.prepare()


def test_siw_f_works_with_many_classes() -> None:
    x, y = torch.randn(400, 4), torch.arange(400) % 100
    objective = Objective(
        plain_network(classes=100),
        "siw-f",
        (x[:200], y[:200]),
        train=(x, y),
        pretrain=lambda _: plain_network(classes=100),
    )
    result = objective.weigh((x[:64], y[:64], torch.arange(64)))
    assert result.train.isfinite().all()
    assert result.metrics["share_unmatched"] == 0


@pytest.mark.parametrize("method", ["iw", "siw-f"])
def test_covariate_shift_needs_no_trusted_labels(method) -> None:
    x, y = whole_train()

    def objective(partition: bool) -> Objective:
        return Objective(
            plain_network(),
            diw.methods.make(method, {"partition": partition}),
            (TRUSTED[0], None),
            train=(x, y),
            pretrain=lambda _: plain_network(),
        )

    z_train, z_trusted = x, TRUSTED[0]
    if method == "siw-f":
        with torch.no_grad():
            z_train, z_trusted = plain_network()[:2](x), plain_network()[:2](TRUSTED[0])
    expected = diw.kmm(z_train, z_trusted).weights
    actual = objective(False).weigh(batch()).train
    torch.testing.assert_close(actual, expected / expected.mean(), rtol=1e-4, atol=1e-4)
    with pytest.raises(UsageError, match="trusted: matching class by class needs labels"):
        objective(True).prepare()
