"""Which epoch is kept: independent of the loop that trains and the report that reads."""

from hypothesis import given
from hypothesis import strategies as st

from diw.runs.journal import is_over, kept_epoch

losses = st.lists(st.integers(0, 1000).map(float), min_size=1, max_size=30)


def test_the_loss_is_smoothed_over_three_epochs() -> None:
    # Epoch 3 is lowest by chance; the means of three are 0.9, 0.8, 0.6, 0.5, 0.3, 0.4.
    assert kept_epoch([0.9, 0.7, 0.2, 0.6, 0.1, 0.5]) == 5
    assert kept_epoch([0.5]) == 1
    assert kept_epoch([0.5, 0.5]) == 1


@given(losses)
def test_no_smoothed_loss_is_lower(values: list[float]) -> None:
    def smooth(epoch: int) -> float:
        window = values[max(0, epoch - 3) : epoch]
        return sum(window) / len(window)

    kept = kept_epoch(values)
    assert all(smooth(kept) <= smooth(epoch) for epoch in range(1, len(values) + 1))
    assert all(smooth(kept) < smooth(epoch) for epoch in range(1, kept))


@given(losses, st.integers(1, 10))
def test_patience_counts_epochs_without_a_better_one(values: list[float], patience: int) -> None:
    assert is_over(values, patience) == (len(values) - kept_epoch(values) >= patience)


def test_nothing_is_over_before_it_begins() -> None:
    assert not is_over([], 1)
