"""The default: it finds wrong labels, leaves samples out by turns, and copes without an index."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import diw
from diw.errors import DIWWarning, UsageError
from diw.methods import make
from diw.methods.remember import Remember
from diw.metrics import auroc

N, K, M = 600, 3, 60
CENTRES = 2.5 * torch.eye(K, 6)


def draw(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Three Gaussian classes in six dimensions."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, K, (n,), generator=generator)
    return CENTRES[labels] + torch.randn(n, 6, generator=generator), labels


def dirty() -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, labels of which two fifths are wrong (class i is called i + 1), which are wrong."""
    inputs, labels = draw(N, 1)
    wrong = torch.rand(N, generator=torch.Generator().manual_seed(2)) < 0.4
    wrong[:M] = False  # the trusted ones
    return inputs, torch.where(wrong, (labels + 1) % K, labels), wrong


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, K))


def train(
    objective: diw.Objective, inputs: Tensor, labels: Tensor, epochs: int, *, index: bool = True
) -> Iterator[tuple[int, Tensor, diw.Weights]]:
    """A plain loop; gives the epoch, the places and the weights of each step."""
    optimizer = torch.optim.Adam(objective.network.parameters(), lr=0.01)
    for epoch in range(1, epochs + 1):
        objective.start_epoch(epoch)
        order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(epoch))
        for rows in order.split(100):
            batch = (inputs[rows], labels[rows], rows)
            result = objective(batch if index else batch[:2])
            optimizer.zero_grad()
            result.loss.backward()
            optimizer.step()
            objective.after_step()
            yield epoch, rows, result.weights


def remember(**fields: float) -> diw.methods.Method:
    return make("remember", {"warmup_steps": 18, "every": 6, **fields})


@pytest.mark.parametrize("trained_on", [True, False])
def test_it_finds_the_wrong_labels_and_keeps_them_out(trained_on: bool) -> None:
    inputs, labels, wrong = dirty()
    trusted = (inputs[:M], labels[:M]) if trained_on else draw(M, 3)
    places = torch.arange(M) if trained_on else None
    objective = diw.Objective(network(), remember(), trusted, trusted_index=places)
    worth = torch.zeros(N)
    for epoch, rows, weights in train(objective, inputs, labels, 40):
        if epoch == 40:
            assert weights.recorded is not None
            worth[rows] = weights.recorded
            assert weights.metrics["wrong_share"] == pytest.approx(0.36, abs=0.12)
    assert auroc(worth, ~wrong) > 0.95
    assert worth[wrong].sum() < 0.08 * worth.sum()
    if trained_on:
        assert worth[:M].min() > 2


def test_where_passes_are_long_trusted_samples_weigh_no_more(monkeypatch) -> None:
    inputs, labels, _ = dirty()
    heaviest = []
    of_trusted = torch.ones(1)
    for many in (100, 5):  # a pass has six steps
        monkeypatch.setattr("diw.labels.running.MANY_STEPS", many)
        trusted = inputs[:M], labels[:M]
        objective = diw.Objective(network(), remember(), trusted, trusted_index=range(M))
        for _, rows, weights in train(objective, inputs, labels, 10):
            if weights.recorded is not None:
                of_trusted = weights.recorded[rows < M]
        heaviest.append(float(of_trusted.max()))
    assert heaviest[0] > 1.5 * heaviest[1]


def test_a_fold_has_no_weight_and_keeps_its_estimate() -> None:
    inputs, labels, _ = dirty()
    objective = diw.Objective(network(), remember(block=2), (inputs[:M], labels[:M]))
    out: dict[int, set[int]] = {}
    for epoch, rows, weights in train(objective, inputs, labels, 12):
        if epoch > 3:
            assert weights.train is not None
            assert weights.recorded is not None
            assert (weights.recorded > 0).all()
            out.setdefault(epoch, set()).update(rows[weights.train == 0].tolist())
    assert out[5] == out[6] != out[7] == out[8]
    assert out[4] == out[11] == out[12]  # the second of four folds comes again
    assert not out[4] & out[5]
    assert sorted(out[4] | out[5] | out[7] | out[9]) == list(range(N))
    assert all(N / 6 < len(places) < N / 3 for places in out.values())


def test_right_labels_and_equal_shares_give_equal_weights() -> None:
    inputs, labels = draw(N, 1)
    objective = diw.Objective(network(), remember(folds=1), (inputs[:M], labels[:M]),
                              trusted_index=torch.arange(M))  # fmt: skip
    for epoch, _, weights in train(objective, inputs, labels, 20):
        if epoch == 20:
            assert weights.train is not None
            assert diw.metrics.effective_sample_size(weights.train) > 0.9


def test_rare_classes_regain_their_share() -> None:
    inputs, labels = draw(4 * N, 5)
    kept = torch.cat([torch.where(labels != 0)[0][:570], torch.where(labels == 0)[0][:30]])
    inputs, labels = inputs[kept], labels[kept]
    objective = diw.Objective(network(), remember(folds=1), draw(300, 6))
    by_class = torch.zeros(K)
    for epoch, rows, weights in train(objective, inputs, labels, 25):
        if epoch == 25:
            assert weights.train is not None
            by_class += torch.bincount(labels[rows], weights.train, K)
    np.testing.assert_allclose(by_class / by_class.sum(), 1 / 3, atol=0.08)


def test_without_an_index_it_warns_once_and_judges_by_present_predictions() -> None:
    inputs, labels, wrong = dirty()
    objective = diw.Objective(network(), remember(), draw(M, 3))
    with pytest.warns(DIWWarning, match="no index") as caught:
        steps = list(train(objective, inputs, labels, 8, index=False))
    assert len([one for one in caught if "no index" in str(one.message)]) == 1
    last = [auroc(weights.train, ~wrong[rows]) for epoch, rows, weights in steps if epoch == 8]
    assert np.mean(last) > 0.9


def test_without_classes_it_matches_losses_as_diw_does() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs, targets = torch.randn(40, 6, generator=generator), torch.rand(40, 1)
    model = nn.Linear(6, 1)

    def weights(method: str) -> Tensor | None:
        objective = diw.Objective(
            model,
            method,
            (inputs[:8], targets[:8]),
            criterion=lambda outputs, targets: (outputs - targets).square().mean(1),
        )
        objective.start_epoch(2)
        return objective((inputs, targets)).weights.train

    expected = weights("diw")
    with pytest.warns(DIWWarning, match="no classes"):
        assert torch.equal(weights("remember"), expected)


@pytest.mark.parametrize("trained_on", [True, False])
def test_wrong_trusted_labels_are_noticed_and_not_followed(trained_on: bool) -> None:
    inputs, labels, _ = dirty()
    trusted, right = draw(200, 3)
    bad = torch.arange(0, 200, 10)
    given = right.clone()
    given[bad] = (right[bad] + 2) % K  # the errors of the training set go the other way
    if trained_on:  # they stand at the end, in reverse
        inputs, labels = torch.cat([inputs, trusted.flip(0)]), torch.cat([labels, given.flip(0)])
    places = torch.arange(len(inputs) - 1, N - 1, -1) if trained_on else None
    method = make("remember", {"warmup_steps": 18, "every": 3})
    assert isinstance(method, Remember)
    objective = diw.Objective(network(), method, (trusted, given), trusted_index=places)
    estimates = torch.ones(len(inputs))
    with pytest.warns(DIWWarning, match=r"trusted labels look wrong.*doubtful_trusted"):
        steps = list(train(objective, inputs, labels, 30))
    for _, rows, weights in steps:
        if weights.recorded is not None:
            estimates[rows] = weights.recorded
    found = set(method.doubtful_trusted)
    expected = {len(inputs) - 1 - i if trained_on else i for i in bad.tolist()}
    assert len(found & expected) > 12
    assert len(found - expected) < 12
    if trained_on:  # some are learned by heart before the first look
        believed = sorted(set(range(N, len(inputs))) - expected - found)
        assert estimates[sorted(found & expected)].mean() < 0.3 * estimates[believed].mean()


@pytest.mark.parametrize(
    "wrong", [{"folds": 0}, {"block": 0}, {"every": 0}, {"warmup_steps": -1}, {"bound": 0.5}]
)
def test_bad_fields_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        make("remember", wrong)


def test_places_must_be_whole_numbers() -> None:
    with pytest.raises(UsageError, match="trusted_index"):
        diw.Objective(network(), "remember", draw(M, 3), trusted_index=torch.rand(M))
