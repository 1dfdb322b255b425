import pytest
import torch

from diw.data import Bundle, Dataset
from diw.data.dataset import TensorInputs
from diw.errors import UsageError
from diw.models import default_model, make_model


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
