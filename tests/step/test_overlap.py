import torch

from diw.step.batch import Batch
from diw.step.rows import TensorRows, as_rows
from diw.step.watch import Overlap


def rows(count: int, seed: int, shape: tuple[int, ...] = (3, 8, 8)) -> torch.Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def seen(*batches: torch.Tensor) -> Overlap:
    overlap = Overlap()
    for inputs in batches:
        overlap.see(Batch(inputs, torch.zeros(len(inputs), dtype=torch.long)))
    return overlap


def trusted(inputs: torch.Tensor) -> TensorRows:
    return TensorRows(inputs, torch.zeros(len(inputs), dtype=torch.long))


def test_it_finds_samples_that_were_trained_on() -> None:
    first, second = rows(40, 1), rows(24, 2)
    assert seen(first, second).found(trusted(second[5:15])) is True
    assert seen(first).found(trusted(second)) is False
    assert seen().found(trusted(second)) is None


def test_one_common_sample_is_enough() -> None:
    train, other = rows(50, 3), rows(30, 4)
    other[17] = train[49]
    assert seen(train[:25], train[25:]).found(trusted(other)) is True


def test_values_of_any_size_and_kind_are_told_apart() -> None:
    large = 1e6 + rows(20, 5, (2000,)).double()
    assert seen(large).found(trusted(large[:3])) is True
    assert seen(large).found(trusted(large[:3] + 1)) is False
    words = torch.randint(0, 1000, (20, 7), generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(20, dtype=torch.long)
    mapping = as_rows({"input_ids": words, "labels": labels})
    overlap = Overlap()
    overlap.see(Batch({"input_ids": words[10:]}, labels[10:]))
    assert overlap.found(mapping) is True
