import pytest
import torch
from torch import nn

from diw.errors import UsageError
from diw.models import LeNet5, ResNet32
from diw.step.look import Tap, is_mode_free, looking, outputs_in_pieces, unwrap
from diw.step.rows import as_rows
from tests.networks import noisy_network, plain_network, samples


def snapshot(model: nn.Module) -> tuple[list[bool], list[torch.Tensor], torch.Tensor]:
    modes = [module.training for module in model.modules()]
    return modes, [b.clone() for b in model.buffers()], torch.get_rng_state()


def assert_same(before, after) -> None:
    assert before[0] == after[0]
    assert all(torch.equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    assert torch.equal(before[2], after[2])


@pytest.mark.parametrize("training", [False, None])
def test_looking_leaves_no_trace(training: bool | None) -> None:
    model = noisy_network()
    model[1].eval()  # a frozen layer in a training network: each module has a mode of its own
    before = snapshot(model)
    with looking(model, training=training):
        model[1].train()
        model(samples(8)[0])
        torch.rand(3)
    assert_same(before, snapshot(model))


def test_looking_leaves_no_trace_after_an_error() -> None:
    model = noisy_network()
    before = snapshot(model)
    with pytest.raises(RuntimeError), looking(model):
        model.train()(samples(8)[0])
        model(torch.zeros(2, 99))
    assert_same(before, snapshot(model))


def test_mode_free_is_proven_by_type() -> None:
    assert is_mode_free(plain_network())
    assert is_mode_free(LeNet5((1, 28, 28), 10))
    assert not is_mode_free(noisy_network())
    assert not is_mode_free(ResNet32((3, 32, 32), 10))

    class Unknown(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if self.training else -x

    assert not is_mode_free(nn.Sequential(Unknown()))

    class Child(LeNet5):  # type: ignore[misc]
        """A subclass does not inherit the promise: its forward may be another."""

    assert not is_mode_free(Child((1, 28, 28), 10))


def test_a_hook_revokes_the_proof() -> None:
    model = plain_network()
    model[0].register_forward_hook(lambda *_: None)
    assert not is_mode_free(model)


def test_lenet_in_both_modes_is_bitwise_the_same() -> None:
    model = LeNet5((1, 28, 28), 10)
    x = torch.rand(16, 1, 28, 28)
    assert torch.equal(model.train()(x), model.eval()(x))


def test_unwrap_finds_the_network_inside_wrappers() -> None:
    model = plain_network()
    assert unwrap(model) is model
    assert unwrap(nn.DataParallel(model)) is model
    assert unwrap(torch.compile(model)) is model  # type: ignore[arg-type]


def test_tap_catches_what_enters_the_last_linear_layer() -> None:
    model = plain_network()
    x = samples(5)[0]
    with Tap(model).listening() as caught:
        model(x)
    assert torch.equal(caught.hidden, model[:2](x))
    assert not caught.hidden.requires_grad


def test_tap_goes_by_what_a_forward_runs_not_by_the_order_of_definition() -> None:
    class HeadFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(8, 3)
            self.body = nn.Linear(4, 8)
            self.unused = nn.Linear(2, 2)

        def forward(self, x):
            return self.head(self.body(x))

    model, x = HeadFirst(), samples(5)[0]
    with Tap(model).listening() as caught:
        model(x)
    assert torch.equal(caught.hidden, model.body(x))
    with Tap(model, "unused").listening() as nothing:
        model(x)
    with pytest.raises(UsageError, match="did not run this layer"):
        _ = nothing.hidden


def test_tap_names_the_choices() -> None:
    with pytest.raises(UsageError, match=r"no submodule 'fc'; choose one of 0, 1, 2"):
        Tap(plain_network(), "fc")
    with pytest.raises(UsageError, match=r"no nn\.Linear"):
        Tap(nn.Sequential(nn.Conv2d(1, 1, 1)))


def test_a_network_is_run_in_pieces_as_in_one_go_and_left_as_it_was() -> None:
    model = noisy_network(torch.float64)
    model.train()(samples(30, dtype=torch.float64)[0])  # buffers that have moved
    inputs, targets = samples(25, seed=1, dtype=torch.float64)
    rows, index = as_rows((inputs, targets)), torch.arange(25).flip(0)
    before = snapshot(model)
    pieces = []
    for batch, outputs in outputs_in_pieces(model, rows, index, tap=Tap(model), piece=10):
        assert_same(before, snapshot(model))  # between the pieces too
        assert torch.is_grad_enabled()
        assert not outputs.values.requires_grad
        pieces.append((batch, outputs))
    assert [len(batch) for batch, _ in pieces] == [10, 10, 5]
    with torch.no_grad():
        hidden = model.eval()[:-1](inputs.flip(0))
        torch.testing.assert_close(torch.cat([o.hidden for _, o in pieces]), hidden)
        torch.testing.assert_close(torch.cat([o.values for _, o in pieces]), model[-1](hidden))
    assert torch.equal(torch.cat([batch.targets for batch, _ in pieces]), targets.flip(0))


def test_rows_are_read_as_the_iteration_goes_on() -> None:
    read = []

    class Recording:
        targets = None

        def take(self, index: torch.Tensor) -> tuple[torch.Tensor, None]:
            read.append(len(index))
            return torch.zeros(len(index), 4), None

        def __len__(self) -> int:
            return 100

    pieces = outputs_in_pieces(plain_network(), Recording(), piece=10)
    assert not read
    next(pieces)
    next(pieces)
    assert read == [10, 10]
