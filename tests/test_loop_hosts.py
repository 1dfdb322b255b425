"""The objective in loops that are already there: what they yield, return, wrap and forget."""

import copy
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import diw
from diw.errors import DIWWarning, UsageError
from diw.methods import make
from tests.networks import noisy_network, plain_network, samples


def objective_of(model, trusted, method="diw", **options) -> diw.Objective:
    objective = diw.Objective(model, method, trusted, **options)
    objective.start_epoch(2)
    return objective


class ByName(nn.Module):
    """Takes its input by name and returns what Hugging Face's networks return."""

    def __init__(self, kind):
        super().__init__()
        self.inner = plain_network()
        self.kind = kind

    def forward(self, pixels):
        return self.kind(self.inner(pixels))


KINDS = {
    "object": lambda logits: SimpleNamespace(loss=None, logits=logits),
    "mapping": lambda logits: {"hidden": logits * 2, "logits": logits},
}


class Samples:
    """A map-style data set of mappings."""

    def __init__(self, data, name="labels"):
        self.data = data
        self.name = name

    def __len__(self):
        return len(self.data[0])

    def __getitem__(self, place):
        return {"pixels": self.data[0][place], self.name: self.data[1][place]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["diw", "diw2-f", "remember", "reweight"])
def test_mappings_and_outputs_with_logits_are_the_same_as_tuples(method, kind) -> None:
    train, trusted = samples(16), samples(30, seed=1)
    ours = objective_of(ByName(KINDS[kind]), Samples(trusted), method)
    theirs = objective_of(plain_network(), trusted, method)
    loader = DataLoader(diw.IndexedDataset(Samples(train, "label")), batch_size=16)
    plain = (*train, torch.arange(16))
    torch.testing.assert_close(ours(next(iter(loader))).loss, theirs(plain).loss)


@pytest.mark.parametrize("form", ["pairs", "mappings", "loader", "batch", "tensors"])
def test_trusted_samples_in_any_form_are_the_same(form) -> None:
    inputs, targets = samples(20, seed=1)
    trusted = {
        "pairs": TensorDataset(inputs, targets),
        "mappings": Samples((inputs, targets)),
        "loader": DataLoader(TensorDataset(inputs, targets), batch_size=4, shuffle=True),
        "batch": diw.Batch(inputs, targets),
        "tensors": {"pixels": inputs, "labels": targets},
    }[form]
    named = form in ("mappings", "tensors")
    model = ByName(KINDS["object"]) if named else plain_network()
    train = {"pixels": samples(16)[0], "labels": samples(16)[1]} if named else samples(16)
    size = None if form == "loader" else 4  # a loader says itself how large its batches are
    ours = objective_of(model, trusted, trusted_batch_size=size)
    theirs = objective_of(plain_network(), (inputs, targets), trusted_batch_size=4)
    for _ in range(3):
        torch.testing.assert_close(ours(train).loss, theirs(samples(16)).loss)


def test_a_data_set_with_a_collate_function_of_its_own() -> None:
    """Sequences of unequal length are padded where a batch of trusted ones is made."""
    sequences = [([1] * (1 + i % 3), i % 2) for i in range(10)]

    def collate(drawn):
        inputs = [torch.tensor(tokens) for tokens, _ in drawn]
        padded = nn.utils.rnn.pad_sequence(inputs, batch_first=True)
        return {"input": padded, "labels": torch.tensor([label for _, label in drawn])}

    model = nn.Sequential(nn.Embedding(2, 4), nn.Flatten(1), nn.LazyLinear(2))
    model(torch.zeros(1, 3, dtype=torch.int64))
    batch = collate(sequences)
    for trusted, options in (
        (sequences, {"collate": collate}),
        (DataLoader(sequences, collate_fn=collate), {"trusted_batch_size": 10}),
    ):
        objective = objective_of(model, trusted, **options)
        assert objective(batch).weights.shape == (10,)


def test_indexed_adds_where_a_sample_is() -> None:
    inputs, targets = samples(12)
    tuples = DataLoader(diw.IndexedDataset(TensorDataset(inputs, targets)), batch_size=5)
    mappings = DataLoader(diw.IndexedDataset(Samples((inputs, targets))), batch_size=5)
    for ours, named in zip(tuples, mappings, strict=True):
        batch = diw.Batch.of(named)
        assert torch.equal(ours[2], batch.index)
        assert torch.equal(inputs[batch.index], batch.inputs["pixels"])
        assert "index" not in batch.inputs


def test_weights_stand_for_a_tensor() -> None:
    model, batch = plain_network(), samples(16)
    result = objective_of(model, samples(20, seed=1))(batch)
    weights, plain = result.weights, result.weights.train
    losses = nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")
    for product in (weights * losses, losses * weights, torch.mul(weights, losses)):
        assert torch.equal(product, plain * losses)
    assert torch.equal(torch.stack([weights, weights]), torch.stack([plain, plain]))
    assert torch.equal(2 * weights, 2 * plain)
    assert torch.equal(weights / 2, plain / 2)
    assert torch.equal(losses[weights > 0.5], losses[plain > 0.5])
    assert torch.equal(weights[:3], plain[:3])
    assert weights.shape == (16,)
    assert len(weights) == 16
    assert weights.mean() == plain.mean()
    assert np.array_equal(np.asarray(weights), plain.numpy())
    again = pickle.loads(pickle.dumps(copy.deepcopy(weights)))
    assert torch.equal(again.train, plain)
    nothing = diw.Objective(model, "clean", samples(20))(None).weights
    with pytest.raises(UsageError, match="does not train on the training batch"):
        nothing.mean()


@pytest.mark.parametrize("network", [plain_network, noisy_network])
def test_autocast_matches_in_float32_and_trains_every_parameter(network) -> None:
    model = network()
    objective = objective_of(
        model, samples(30, seed=1), criterion=lambda o, t: ((o - 0.5) ** 2).mean(1) + 0 * t
    )
    with torch.autocast("cpu", torch.bfloat16):
        result = objective(samples(16))
    result.loss.backward()
    assert result.weights.dtype == torch.float32
    assert all(p.grad is not None and bool(p.grad.any()) for p in model.parameters())


def test_accumulation_is_one_step() -> None:
    """Two halves with weights of their own, summed; the clock moves once."""
    model = plain_network()
    objective = objective_of(model, samples(20, seed=1), trusted_batch_size=20)
    inputs, targets = samples(16)
    halves = [(inputs[:8], targets[:8]), (inputs[8:], targets[8:])]
    for half in halves:
        (objective(half).loss / 2).backward()
    objective.after_step()
    assert objective.state_dict()["t"] == 1
    summed = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    losses = nn.functional.cross_entropy(model(inputs), targets, reduction="none")
    ((torch.cat([objective.weigh(half).train for half in halves]) * losses).mean()).backward()
    for ours, p in zip(summed, model.parameters(), strict=True):
        torch.testing.assert_close(ours, p.grad)


@pytest.mark.parametrize("method", ["diw", "diw2-f", "reweight"])
def test_a_compiled_model_gives_what_the_plain_one_gives(method) -> None:
    model = noisy_network()
    compiled = torch.compile(copy.deepcopy(model), backend="aot_eager")
    losses = []
    for network in (model, compiled):
        torch.manual_seed(0)
        losses.append(objective_of(network, samples(30, seed=1), method)(samples(16)).loss)
    torch.testing.assert_close(*losses)


def test_a_resumed_loop_goes_on_as_if_nothing_had_happened() -> None:
    def start():
        model = plain_network()
        objective = diw.Objective(
            model, make("diw", {"momentum": 0.5}), samples(20, seed=1), trusted_batch_size=8
        )
        return model, objective, torch.optim.Adam(model.parameters())

    def train(model, objective, optimizer, epochs) -> None:
        for epoch in epochs:
            objective.start_epoch(epoch)
            inputs, targets = samples(16, seed=epoch)
            optimizer.zero_grad()
            objective((inputs, targets, torch.arange(16))).loss.backward()
            optimizer.step()
            objective.after_step()

    whole, before, after = start(), start(), start()
    train(*whole, range(1, 7))
    train(*before, range(1, 4))
    for new, old in zip(after, before, strict=True):
        new.load_state_dict(copy.deepcopy(old.state_dict()))
    train(*after, range(4, 7))
    assert all(map(torch.equal, whole[0].parameters(), after[0].parameters()))


class Tagger(nn.Module):
    """Scores each of five tokens."""

    def __init__(self, classes_second=False):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(7, 3)
        self.classes_second = classes_second

    def forward(self, tokens):
        scores = self.table(tokens)
        return scores.movedim(-1, 1) if self.classes_second else scores


def sequences(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(7, (n, 5), generator=generator)
    labels = torch.randint(3, (n, 5), generator=generator)
    labels[torch.arange(5) >= torch.randint(2, 6, (n, 1), generator=generator)] = -100
    return tokens, labels


@pytest.mark.parametrize("classes_second", [False, True])
def test_a_sequence_has_one_weight_and_its_loss_is_the_mean_over_its_tokens(classes_second) -> None:
    model, (tokens, labels) = Tagger(classes_second), sequences(12)
    result = objective_of(model, sequences(20, seed=1))((tokens, labels))
    scores = Tagger()(tokens)
    losses = torch.stack(
        [
            nn.functional.cross_entropy(s[y >= 0], y[y >= 0])
            for s, y in zip(scores, labels, strict=True)
        ]
    )
    assert result.weights.shape == (12,)
    torch.testing.assert_close(result.loss, (result.weights * losses).mean())


@pytest.mark.parametrize("method", ["uniform", "random", "diw", "reweight"])
def test_each_token_has_a_weight_on_demand(method) -> None:
    model, (tokens, labels) = Tagger(), sequences(12)
    objective = objective_of(model, sequences(20, seed=1), method, unit="token")
    result = objective((tokens, labels))
    flat = labels[labels >= 0]
    losses = nn.functional.cross_entropy(model(tokens)[labels >= 0], flat, reduction="none")
    assert result.weights.shape == flat.shape
    torch.testing.assert_close(result.loss, (result.weights * losses).mean())


def test_regression_and_several_labels() -> None:
    inputs, _ = samples(16)
    squared = nn.MSELoss(reduction="none")
    model = plain_network(classes=1)
    values = inputs[:, :1]
    result = objective_of(model, (inputs, values), criterion=squared)((inputs, values))
    torch.testing.assert_close(
        result.loss, (result.weights * (model(inputs) - values).squeeze(1) ** 2).mean()
    )
    several = (inputs[:, :3] > 0).float()

    def binary(outputs, targets):
        return nn.functional.binary_cross_entropy_with_logits(
            outputs, targets, reduction="none"
        ).mean(1)

    objective = objective_of(plain_network(), (inputs, several), criterion=binary)
    assert objective((inputs, several)).weights.shape == (16,)


def wrong(model, batch=None, trusted=None, **options):
    return lambda: objective_of(model, trusted or samples(20), **options)(batch or samples(16))


INPUTS, TARGETS = samples(16)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = plain_network()

    def forward(self, x):
        return self.inner(x), x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            wrong(plain_network(classes=1), (INPUTS, INPUTS[:, :1]), (INPUTS, INPUTS[:, :1])),
            r"^criterion: outputs \(16, 1\) hold no score for each class",
        ),
        (
            wrong(plain_network(), trusted=(INPUTS, TARGETS + 1)),
            r"^trusted: labels go from 1 to 3, but the outputs are of classes 0\.\.2$",
        ),
        (wrong(plain_network(), (INPUTS, TARGETS - 1)), r"^batch: labels go from -1 to 1"),
        (
            wrong(plain_network(), trusted=(torch.ones(9, 5), torch.ones(9).long())),
            r"^trusted: each input has shape \(5,\), and one of the training batch \(4,\)$",
        ),
        (
            wrong(plain_network(), trusted=(INPUTS.double(), TARGETS)),
            r"^trusted: the inputs are torch.float64, .* torch.float32$",
        ),
        (
            wrong(
                ByName(KINDS["object"]),
                {"pixels": INPUTS, "labels": TARGETS},
                {"pixel": INPUTS, "labels": TARGETS},
            ),
            r"^trusted: the inputs are pixel, and those of the training batch pixels$",
        ),
        (wrong(Pair()), r"^model: it returns a tuple; .* outputs_to_logits=lambda"),
        (wrong(plain_network(), {"pixels": INPUTS}), r"^batch: a mapping needs its labels under "),
        (wrong(plain_network(), unit="word"), '^unit: must be "sample" or "token"'),
        (
            wrong(plain_network(), unit="token"),
            r'^batch: unit="token" needs a label for each token',
        ),
        (
            wrong(Tagger(), (torch.ones(4, 3).long(), torch.ones(4, 3).long())),
            r"do not say where the classes are",
        ),
        (
            wrong(plain_network(classes=1), criterion=lambda o, t: (o - t) ** 2),
            r"^criterion: .* gave \(16, 16\); outputs \(16, 1\) and targets \(16,\) were broadcast",
        ),
        (
            wrong(plain_network(), (INPUTS, TARGETS[:, None])),
            r"^batch: targets of shape \(16, 1\) and torch.int64 do not suit outputs \(16, 3\)",
        ),
    ],
)
def test_wrong_use_is_one_line_that_names_the_argument(call, message) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_endless_trusted_set_is_refused() -> None:
    class Endless(IterableDataset):
        def __iter__(self):
            yield from ()

    for trusted in (Endless(), DataLoader(Endless())):
        with pytest.raises(UsageError, match=r"^trusted: an IterableDataset has no rows"):
            diw.Objective(plain_network(), "diw", trusted)


def test_tokens_and_hidden_outputs_do_not_go_together() -> None:
    with pytest.raises(UsageError, match=r"^unit: diw2-f matches hidden outputs"):
        diw.Objective(plain_network(), "diw2-f", samples(20), unit="token")


def test_a_tuple_says_which_part_holds_the_logits() -> None:
    ours = objective_of(Pair(), samples(20, seed=1), outputs_to_logits=lambda outputs: outputs[0])
    theirs = objective_of(plain_network(), samples(20, seed=1))
    result = ours(samples(16))
    torch.testing.assert_close(result.loss, theirs(samples(16)).loss)
    assert isinstance(result.outputs, tuple)


def test_a_loop_that_never_starts_an_epoch_is_told_once() -> None:
    objective = diw.Objective(plain_network(), "diw", samples(20))
    with pytest.warns(DIWWarning, match="^start_epoch: it was not called, .* warm-up") as caught:
        objective(samples(16))
    assert caught[0].filename == __file__
    quiet = [diw.Objective(plain_network(), m, samples(20)) for m in ("uniform", "diw", "reweight")]
    quiet.append(diw.Objective(plain_network(), make("diw", {"warmup_steps": 5}), samples(20)))
    quiet[1].start_epoch(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for silent in (objective, *quiet):
            silent(samples(16))
