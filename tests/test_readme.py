"""The snippets that newcomers copy are run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What a reader brings: a network, an optimiser, a loader, trusted samples; a table, rows checked.
BROUGHT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x, y = torch.randn(512, 20), torch.randint(3, (512,))
x_trusted, y_trusted = torch.randn(64, 20), torch.randint(3, (64,))
dataset = TensorDataset(x, y)
loader = DataLoader(dataset, batch_size=128, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
epochs = 3
X, right = x.numpy(), ["cat" if value > 0 else "dog" for value in x[:, 0]]
given = ["cat"] * 100 + right[100:]
checked = {row: right[row] for row in torch.randperm(512)[:60].tolist()}
"""


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


@pytest.mark.parametrize("place", range(len(blocks("README.md"))))
def test_readme_snippets_run(place: int, tmp_path: Path) -> None:
    program = BROUGHT + blocks("README.md")[place]
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_example_methods_of_contributing_are_methods(tmp_path: Path) -> None:
    for name, example in zip(("easy", "composed"), blocks("CONTRIBUTING.md"), strict=True):
        (tmp_path / f"{name}.py").write_text(example)
    program = (
        BROUGHT
        + "import composed, easy, diw\n"
        + "objective = diw.Objective(model, 'easy', (x_trusted, y_trusted))\n"
        + "weights = objective.weigh((x, y)).train\n"
        + "assert weights.shape == (512,) and abs(weights.mean() - 1) < 1e-5\n"
        + "from diw.methods import describe, make\n"
        + "assert describe(easy.Easy)[0].text == 'τ, in units of the loss.'\n"
        + "assert make('easy', {'temperature': '2'}).temperature == 2.0\n"
        + "assert make('diw-inputs', {'bound': 9}) == composed.DiwInputs(bound=9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
