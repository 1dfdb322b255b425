import collections
import copy
import pickle

import pytest
import torch
from torch import nn

import diw
from diw.errors import DIWWarning, RunError, UsageError
from diw.methods import Remember, methods
from diw.objective import Objective
from diw.step import Horizon
from tests.contract.cases import Case, objective_of
from tests.networks import noisy_network, plain_network, samples


def train(loss_of, model: nn.Module, steps: int = 5) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(3)
    for t in range(steps):
        optimizer.zero_grad()
        loss_of(samples(16, seed=t)).backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("network", [plain_network, noisy_network])
def test_weights_all_one_are_plain_training_bit_for_bit(network, reduction) -> None:
    model = network()
    plain = copy.deepcopy(model)
    criterion = nn.CrossEntropyLoss(reduction=reduction)
    objective = Objective(model, "uniform", samples(10), reduction=reduction)
    ours = train(lambda batch: objective(batch).loss, model)
    theirs = train(lambda batch: criterion(plain(batch[0]), batch[1]), plain)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), plain.buffers(), strict=True))


def test_diw_in_warm_up_is_plain_training_bit_for_bit() -> None:
    model = noisy_network()
    plain = copy.deepcopy(model)
    objective = Objective(model, "diw", samples(10))
    objective.start_epoch(1)
    ours = train(lambda batch: objective(batch).loss, model)
    theirs = train(lambda batch: nn.functional.cross_entropy(plain(batch[0]), batch[1]), plain)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_the_loss_is_the_weighted_mean_and_sum() -> None:
    model = plain_network()
    batch = samples(16)
    losses = nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")
    for reduction, scale in (("mean", 1 / 16), ("sum", 1.0)):
        objective = Objective(model, "random", samples(10), reduction=reduction, seed=1)
        result = objective(batch)
        weights = result.weights.train
        torch.testing.assert_close(result.loss, (weights * losses).sum() * scale)
        torch.testing.assert_close(weights.mean(), torch.tensor(1.0))
        assert weights.min() == 0  # a rectified Gaussian


def test_a_weight_of_zero_is_the_sample_left_out() -> None:
    model = plain_network()
    inputs, targets = samples(16)
    objective = Objective(model, "random", samples(10))
    result = objective((inputs, targets))
    weights = result.weights.train
    result.loss.backward()
    with_zeros = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    kept = weights > 0
    losses = nn.functional.cross_entropy(model(inputs[kept]), targets[kept], reduction="none")
    ((weights[kept] * losses).sum() / 16).backward()
    for ours, theirs in zip(with_zeros, model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs.grad)


def test_under_no_grad_it_is_the_plain_loss_and_nothing_moves() -> None:
    model = noisy_network().eval()
    objective = Objective(model, "diw", samples(10))
    objective.start_epoch(2)
    before = copy.deepcopy(objective.state_dict())
    batch = samples(16)
    with torch.no_grad():
        result = objective(batch)
    expected = nn.functional.cross_entropy(model(batch[0]), batch[1])
    torch.testing.assert_close(result.loss, expected.detach())
    assert objective.state_dict() == before


def test_clean_trains_on_the_trusted_samples_alone() -> None:
    model = plain_network()
    trusted = samples(10)
    result = Objective(model, "clean", trusted)(None)
    expected = nn.functional.cross_entropy(model(trusted[0]), trusted[1])
    torch.testing.assert_close(result.loss, expected)
    assert result.weights.train is None
    with pytest.raises(UsageError, match="batch: diw needs a training batch"):
        Objective(model, "diw", trusted)(None)


def test_values_that_are_not_finite_say_what_to_do() -> None:
    model = plain_network()
    with torch.no_grad():
        model[0].weight.fill_(torch.nan)
    with pytest.raises(RunError, match=r"diw: the network's values are NaN .* learning rate"):
        Objective(model, "diw", samples(20))(samples(16))


def test_trusted_inputs_that_are_not_finite_are_named() -> None:
    inputs, targets = samples(20)
    inputs[3, 1] = torch.nan
    objective = Objective(plain_network(), "diw", (inputs, targets))
    objective.start_epoch(2)
    with pytest.raises(RunError, match=r"inputs of a trusted batch are NaN .* fill in or drop"):
        objective(samples(16))


def test_looking_after_the_hosts_forward_spares_its_graph() -> None:
    model = noisy_network()
    model[1].eval()  # a frozen batch norm keeps its buffers in the graph
    objective = Objective(model, "diw", samples(20))
    objective.start_epoch(2)
    inputs, targets = samples(16)
    outputs = model(inputs)
    weights = objective.weigh((inputs, targets), outputs=outputs).train
    losses = nn.functional.cross_entropy(outputs, targets, reduction="none")
    (weights * losses).mean().backward()


def complementary(outputs, targets):
    """For labels that name a class which a sample is *not* of."""
    return -torch.log1p(-outputs.softmax(1)[torch.arange(len(targets)), targets])


def ordinary(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def assert_weighted_by(objective, criterion, trusted_criterion) -> None:
    """The objective matches and weighs what these criteria give."""
    objective.start_epoch(2)
    train, trusted = samples(16), samples(20)
    outputs = objective.network(train[0]).detach()
    ours = criterion(outputs, train[1])
    theirs = trusted_criterion(objective.network(trusted[0]).detach(), trusted[1])
    match = diw.kmm(ours, theirs).weights
    result = objective(train)
    expected = match / match.mean()
    torch.testing.assert_close(result.weights.train, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(result.loss, (expected * ours).mean(), rtol=1e-4, atol=1e-4)


def test_criteria_by_keyword_or_in_a_task_of_trusted_samples_too() -> None:
    objective = Objective(
        plain_network(), "diw", samples(20), criterion=complementary, trusted_criterion=ordinary
    )
    task = objective.task
    for made in (objective, Objective(plain_network(), "diw", task)):
        assert_weighted_by(made, complementary, ordinary)
    for name, value in (("criterion", ordinary), ("train", samples(5))):
        with pytest.raises(UsageError, match=f"^{name}: the task has it already"):
            Objective(plain_network(), "diw", task, **{name: value})
    with pytest.raises(TypeError, match="keyword argument 'citerion'"):
        Objective(plain_network(), "diw", samples(20), citerion=ordinary)


@pytest.mark.parametrize(("method", "expected"), [("remember", 30), (Remember(), 200)])
def test_a_method_given_by_name_suits_itself_to_the_training(method, expected) -> None:
    objective = Objective(plain_network(), method, samples(20))
    assert objective.for_training(300, steps_per_pass=10) is objective
    assert objective.task.horizon == Horizon(steps=300, steps_per_pass=10)
    assert objective.step(samples(8)).horizon.steps == 300
    assert objective.method.warmup_steps == expected
    with pytest.raises(UsageError, match=r"^steps: must be at least 1, and is 0"):
        objective.for_training(0)


def test_a_misspelt_attribute_of_weights_is_named() -> None:
    weights = Objective(plain_network(), "uniform", samples(20)).weigh(samples(8))
    with pytest.raises(AttributeError, match="Weights has no 'metric'; it has train, targets"):
        _ = weights.metric


def test_the_state_of_another_method_is_refused() -> None:
    first = Objective(plain_network(), "diw2-f", samples(20))
    first.weigh(samples(16))
    with pytest.raises(UsageError, match=r"^state: is of the method diw2-f, and not of remember"):
        Objective(plain_network(), "remember", samples(20)).load_state_dict(first.state_dict())


@pytest.mark.parametrize("name", [*methods()])
def test_a_row_that_is_not_finite_is_named(name) -> None:
    inputs, targets, index = (*samples(48), torch.arange(48))
    inputs[5, 2] = torch.nan
    objective = objective_of(Case(name))
    if name != "clean":  # which does not look at it
        with pytest.raises(RunError, match=rf"^{name}: .* in row 5 \(sample 5\); fill"):
            objective((inputs, targets, index))


def test_a_loss_that_is_not_finite_is_said_where_inputs_are() -> None:
    objective = Objective(
        plain_network(), "uniform", samples(20), criterion=lambda z, y: ordinary(z, y) / 0
    )
    with pytest.warns(DIWWarning, match="^loss: it is NaN or infinite in step 1; lower"):
        objective(samples(8))


@pytest.mark.parametrize("name", ["remember", "glc", "iw-t", "diw2-f"])
def test_a_label_that_is_no_class_is_named(name) -> None:
    inputs, targets, index = (*samples(48), torch.arange(48))
    targets[7] = -100
    with pytest.raises(UsageError, match=r"row 7 has .*-100; leave such rows out"):
        objective_of(Case(name))((inputs, targets, index))


def test_a_step_is_what_a_method_sees() -> None:
    model, train = noisy_network(), samples(16)
    objective = Objective(model, "uniform", samples(20), trusted_batch_size=8)
    assert objective.network is model
    step = objective.step(train)
    assert len(step.trusted) == 7  # twenty samples in three batches of nearly one size
    assert objective.step(train).trusted.index.tolist() != step.trusted.index.tolist()
    seen = copy.deepcopy(model).eval()
    assert torch.equal(step.train_eval.losses, ordinary(seen(train[0]), train[1]))


@pytest.mark.parametrize("method", ["diw", "diw2-f"])
@pytest.mark.parametrize("at_the_start", [True, False])
def test_the_hosts_wrapped_model_runs_the_training_forward(method, at_the_start) -> None:
    model = plain_network()
    calls = []

    class DistributedDataParallel(nn.Module):  # known by its name, as torch's own is
        def __init__(self):
            super().__init__()
            self.module = model

        def forward(self, x):
            calls.append(len(x))
            return self.module(x)

    wrapped = DistributedDataParallel()
    objective = Objective(wrapped if at_the_start else model, method, samples(20))
    objective.start_epoch(2)
    objective(samples(16), model=None if at_the_start else wrapped)
    assert calls == [16]


def test_shared_and_separate_probes_agree_where_the_network_has_no_mode() -> None:
    weights = []
    for probe in ("shared", "separate"):
        objective = Objective(plain_network(), "diw", samples(20), probe=probe)
        objective.start_epoch(2)
        weights.append(objective.weigh(samples(16)).train)
    assert torch.equal(*weights)


class Named(nn.Module):
    """Takes its inputs by name, and calls its last layer by keyword."""

    def __init__(self):
        super().__init__()
        self.inner = plain_network()

    def forward(self, x, scale):
        hidden = self.inner[:2](x * scale)
        return self.inner[2](input=hidden)


@pytest.mark.parametrize("mapping", [dict, collections.UserDict])
@pytest.mark.parametrize("method", ["diw", "diw2-f", "reweight"])
def test_inputs_by_name_are_the_same_as_by_place(method, mapping) -> None:
    def named(data):
        inputs, targets = data
        return mapping(x=inputs, scale=torch.full((len(targets), 1), 2.0)), targets

    def doubled(data):
        return 2.0 * data[0], data[1]

    train, trusted = samples(16), samples(30, seed=1)
    ours = Objective(Named(), method, named(trusted))
    theirs = Objective(plain_network(), method, doubled(trusted))
    for objective in (ours, theirs):
        objective.start_epoch(2)
    torch.testing.assert_close(ours(named(train)).loss, theirs(doubled(train)).loss)


def test_an_objective_can_be_pickled() -> None:
    objective = Objective(plain_network(), "diw", samples(20))
    again = pickle.loads(pickle.dumps(objective))
    batch = samples(16)
    assert torch.equal(objective.weigh(batch).train, again.weigh(batch).train)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "none"}, "^reduction: must be"),
        ({"probe": "maybe"}, "^probe: must be"),
        ({"method": "dwi"}, r"^method: there is no 'dwi' \(did you mean diw\?\)"),
        ({"trusted": None}, "^trusted: give the trusted samples"),
        ({"criterion": nn.CrossEntropyLoss()}, r'^criterion: .* one loss per sample.*"none"'),
        ({"true_weights": [1.0, -1.0]}, "^true_weights: "),
        ({"true_weights": [1.0, float("nan")]}, "^true_weights: "),
        ({"true_weights": [[1.0], [1.0]]}, "^true_weights: "),
        ({"pretrain": plain_network().state_dict()}, "^pretrain: give a function"),
        (
            {"model": plain_network().requires_grad_(False), "method": "reweight"},
            "^model: every parameter is frozen",
        ),
    ],
)
def test_wrong_arguments_are_named(options, message) -> None:
    arguments = {"model": plain_network(), "method": "uniform", "trusted": samples(5)} | options
    with pytest.raises(UsageError, match=message):
        Objective(**arguments)(samples(16))


def test_bad_batch_and_epoch() -> None:
    objective = Objective(plain_network(), "uniform", samples(5))
    with pytest.raises(UsageError, match="batch: give"):
        objective(samples(16)[0])
    with pytest.raises(UsageError, match="epochs count from 1"):
        objective.start_epoch(0)


def epochs_of(objective: Objective, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for epoch in (1, 2, 3):
        objective.start_epoch(epoch)
        for batch in batches:
            objective(batch).loss.backward()
            objective.after_step()


@pytest.mark.parametrize("method", ["diw", "remember"])
def test_trusted_samples_that_are_not_trained_on_are_said_once(method: str) -> None:
    batches = [(*samples(16, seed=t), torch.arange(16 * t, 16 * t + 16)) for t in range(3)]
    objective = Objective(plain_network(), method, samples(10, seed=9))
    with pytest.warns(diw.errors.DIWWarning, match="trusted: the trusted samples were") as said:
        epochs_of(objective, batches)
    assert len(said) == 1


@pytest.mark.filterwarnings("error")
def test_trusted_samples_that_are_trained_on_are_not_said() -> None:
    inputs, targets = samples(16, seed=1)
    batches = [(inputs, targets), samples(16, seed=2)]
    epochs_of(Objective(plain_network(), "diw", (inputs[:10], targets[:10])), batches)
    epochs_of(Objective(plain_network(), "uniform", samples(10, seed=9)), batches)
    with pytest.raises(diw.errors.DIWWarning, match="trusted: the trusted samples were"):
        epochs_of(Objective(plain_network(), "diw", samples(10, seed=9)), batches)
