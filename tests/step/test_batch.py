"""What a batch says of its samples."""

import pytest
import torch

import diw
from diw.errors import UsageError
from diw.step.batch import Batch

INPUTS, TARGETS = torch.randn(6, 2, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (torch.zeros(6, dtype=torch.long), "rows 0 and 1 have the index 0 both, and different"),
        (torch.tensor([4, 1, 2, 3, 4, 5]), "rows 0 and 4 have the index 4 both, and different"),
        (torch.arange(6) + 10**12, "1000000000005 is none"),
        (torch.arange(6) - 1, "-1 is none"),
        (torch.arange(6.0), "not torch.float32"),
        (torch.arange(6) > 2, "not torch.bool"),
        (torch.arange(5), "not torch.int64 of shape .5,."),
    ],
)
@pytest.mark.parametrize("method", ["remember", "elr", "random"])
def test_an_index_of_another_meaning_is_refused(index, words: str, method: str) -> None:
    """A constant mixed all samples up, 10¹² asked for 8 TB."""
    objective = diw.Objective(torch.nn.Linear(2, 3), method, (INPUTS, TARGETS))
    with pytest.raises(UsageError, match=f"^batch: index has to be the place of each .*{words}"):
        objective((INPUTS, TARGETS, index))


def test_an_index_beyond_the_training_set_is_refused_and_a_sample_may_come_twice() -> None:
    objective = diw.Objective(
        torch.nn.Linear(2, 3), "elr", (INPUTS, TARGETS), train=(INPUTS, TARGETS)
    )
    with pytest.raises(UsageError, match="which has 6 samples; 6 is none"):
        objective((INPUTS, TARGETS, torch.arange(1, 7)))
    again = torch.tensor([0, 3, 0, 5])
    objective((INPUTS[again], TARGETS[again], again))


def test_sequences_and_continuous_targets_are_known_by_any_index() -> None:
    Batch(INPUTS, torch.rand(6), torch.zeros(6, dtype=torch.long)).check_index()
    Batch(INPUTS, torch.zeros(6, 2), torch.zeros(6, dtype=torch.long)).check_index()


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (torch.arange(9) < 3, "got torch.bool"),
        ((torch.arange(9) < 3).long(), "places of the 3 trusted samples .*, not 9 numbers"),
        (torch.zeros(3, dtype=torch.long), "gives one place to several"),
        (torch.tensor([0, 1, 6]), "6 is no place in the training set, which has 6 samples"),
    ],
)
def test_places_of_other_samples_are_refused(places, words: str) -> None:
    with pytest.raises(UsageError, match=f"^trusted_index: .*{words}"):
        diw.Objective(
            torch.nn.Linear(2, 3),
            "remember",
            (INPUTS[:3], TARGETS[:3]),
            train=(INPUTS, TARGETS),
            trusted_index=places,
        )
