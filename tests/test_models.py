"""The networks are the paper's; pooling is PyTorch's, bit for bit; names and seeds."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import forward_ad

from diw.data import Bundle, Dataset
from diw.data.dataset import TensorInputs
from diw.errors import UsageError
from diw.models import Block, HalvingMaxPool, default_model, make_model

POOL = HalvingMaxPool()
PYTORCHS = nn.MaxPool2d(2)


def images(seed: int, *shape: int) -> Tensor:
    """Images with many equal values, as behind a background, and a few that are not numbers."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator).round(decimals=1).clamp(min=-0.5)
    values[torch.rand(shape, generator=generator) < 0.01] = float("nan")
    return values


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(2, 9), st.integers(2, 9))
def test_the_maxima_are_pytorchs_bit_for_bit(
    seed: int, channels: int, height: int, width: int
) -> None:
    batch = images(seed, 4, channels, height, width)
    for given_as in (batch, batch.contiguous(memory_format=torch.channels_last), batch[0]):
        with torch.no_grad():
            pooled = POOL(given_as)
        torch.testing.assert_close(pooled, PYTORCHS(given_as), rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(POOL(given_as), pooled, rtol=0, atol=0, equal_nan=True)


def test_gradients_are_pytorchs() -> None:
    batch = images(0, 8, 3, 10, 10).nan_to_num()
    of_ours, of_theirs = (batch.clone().requires_grad_() for _ in range(2))
    POOL(of_ours).square().sum().backward()
    PYTORCHS(of_theirs).square().sum().backward()
    torch.testing.assert_close(of_ours.grad, of_theirs.grad, rtol=0, atol=0)


@pytest.mark.parametrize("enabled", [False, True])
def test_forward_mode_derivatives_are_pytorchs(enabled: bool) -> None:
    batch, direction = images(1, 8, 3, 10, 10).nan_to_num(), torch.randn(8, 3, 10, 10)
    with torch.set_grad_enabled(enabled), forward_ad.dual_level():
        dual = forward_ad.make_dual(batch, direction)
        ours, theirs = (forward_ad.unpack_dual(pool(dual)).tangent for pool in (POOL, PYTORCHS))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_lenet_has_the_hand_counted_parameters():
    convolutions = (25 * 1 * 6 + 6) + (25 * 6 * 16 + 16)
    linear = (400 * 120 + 120) + (120 * 84 + 84) + (84 * 10 + 10)
    model = make_model("lenet5", shape=(1, 28, 28), num_classes=10)
    assert count(model) == convolutions + linear == 61_706


@pytest.mark.parametrize(("channels", "classes"), [(1, 2), (3, 10), (3, 100)])
def test_resnet_has_the_hand_counted_parameters(channels, classes):
    expected = 9 * channels * 16 + 2 * 16  # first convolution and its batch norm
    for before, width in ((16, 16), (16, 32), (32, 64)):
        expected += 9 * before * width + 9 * 9 * width * width  # 10 convolutions
        expected += 10 * 2 * width  # 10 batch norms
    expected += 64 * classes + classes
    model = make_model("resnet32", shape=(channels, 32, 32), num_classes=classes)
    assert count(model) == expected
    assert sum(isinstance(m, nn.Conv2d) for m in model.modules()) == 31
    assert sum(isinstance(m, nn.BatchNorm2d) for m in model.modules()) == 31
    assert [m.p for m in model.modules() if isinstance(m, nn.Dropout)] == [0.3] * 15


def test_mlp_has_the_hand_counted_parameters():
    model = make_model("mlp", shape=(7,), num_classes=3)
    assert count(model) == 7 * 128 + 128 + 128 * 128 + 128 + 128 * 3 + 3


@pytest.mark.parametrize("name", ["lenet5", "resnet32", "mlp"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 29, 41)])
def test_every_model_takes_one_or_three_channels_and_channels_last(name, shape):
    model = make_model(name, shape=shape, num_classes=7, seed=0).eval()
    images = torch.rand(4, *shape)
    logits = model(images)
    assert logits.shape == (4, 7)
    last = model.to(memory_format=torch.channels_last)
    again = last(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(logits, again, atol=1e-4, rtol=1e-4)


def test_padding_in_the_convolution_is_padding_of_the_image():
    model = make_model("lenet5", shape=(1, 28, 28), num_classes=10, seed=0)
    larger = make_model("lenet5", shape=(1, 32, 32), num_classes=10, seed=0)
    larger.load_state_dict(model.state_dict())
    images = torch.rand(3, 1, 28, 28)
    torch.testing.assert_close(model(images), larger(nn.functional.pad(images, (2, 2, 2, 2))))


def test_the_shortcut_has_no_parameters_and_passes_the_input_on():
    block = Block(16, 32, dropout=0.3).eval()
    nn.init.zeros_(block.norm2.weight)
    images = torch.rand(2, 16, 8, 8)
    passed = block(images)
    assert torch.equal(passed[:, :16], images[:, :, ::2, ::2])
    assert (passed[:, 16:] == 0).all()
    assert {name.split(".")[0] for name, _ in block.named_parameters()} == {
        "conv1",
        "norm1",
        "conv2",
        "norm2",
    }


def test_the_seed_decides_the_initialisation_and_the_global_state_is_untouched():
    before = torch.get_rng_state()
    one, same, other = (
        make_model("lenet5", shape=(1, 28, 28), num_classes=10, seed=s) for s in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    first, second, third = (m.classifier.weight for m in (one, same, other))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@pytest.mark.parametrize(
    ("kind", "shape", "name"),
    [
        ("table", (12,), "mlp"),
        ("image", (1, 28, 28), "lenet5"),
        ("image", (1, 32, 32), "lenet5"),
        ("image", (1, 8, 8), "resnet32"),
        ("image", (3, 32, 32), "resnet32"),
        ("image", (3, 64, 64), "resnet32"),
    ],
)
def test_the_default_model_goes_by_kind_and_size(kind, shape, name):
    data = Dataset(TensorInputs(torch.zeros(2, *shape)), torch.tensor([0, 1]), ("a", "b"))
    assert default_model(Bundle("x", kind, data)) == name
    model = make_model("auto", shape=shape, num_classes=2).eval()
    assert model(torch.zeros(2, *shape)).shape == (2, 2)


def test_a_factory_of_your_own(tmp_path, monkeypatch):
    (tmp_path / "own_networks.py").write_text(
        "from torch import nn\n"
        "def linear(shape, num_classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], num_classes))\n"
        "def wrong(shape, num_classes):\n"
        "    return 3\n"
    )
    monkeypatch.chdir(tmp_path)
    model = make_model("own_networks:linear", shape=(5,), num_classes=2, seed=1)
    assert model(torch.zeros(3, 5)).shape == (3, 2)
    with pytest.raises(UsageError, match="returned a int"):
        make_model("own_networks:wrong", shape=(5,), num_classes=2)
    with pytest.raises(UsageError, match="no callable 'absent'"):
        make_model("own_networks:absent", shape=(5,), num_classes=2)


@pytest.mark.parametrize("name", ["vgg", "", "no_such_module:f", ":f", "m:"])
def test_unknown_models_are_refused_with_the_choices(name):
    with pytest.raises(UsageError, match=r"^model"):
        make_model(name, shape=(1, 28, 28), num_classes=10)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("lenet5", (4,), "needs images"),
        ("resnet32", (4,), "choose mlp"),
        ("lenet5", (1, 8, 8), "at least 12 x 12"),
    ],
)
def test_a_shape_that_a_network_cannot_take_is_wrong_use(name, shape, words):
    with pytest.raises(UsageError, match=f"model: {name}.*{words}"):
        make_model(name, shape=shape, num_classes=2)
