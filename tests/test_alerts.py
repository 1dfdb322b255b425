import pytest

from diw.alerts import complaints


def rows(**columns: list[float]) -> list[dict[str, object]]:
    """Metrics with these columns, all weighted."""
    length = len(next(iter(columns.values())))
    return [
        {"epoch": place + 1, "weighted": True, **{name: c[place] for name, c in columns.items()}}
        for place in range(length)
    ]


@pytest.mark.parametrize(
    ("columns", "kind", "epoch"),
    [
        ({"ess": [0.5, 0.09, 0.08]}, "ess", 2),
        ({"ess": [0.5, 0.5], "share_bound": [0.0, 0.2]}, "bound", 2),
        ({"ess": [0.5], "share_zero": [0.95]}, "zero", 1),
        ({"doubtful_trusted": [0, 0, 12.5]}, "doubtful", 3),
        (
            {
                "train_loss": [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
                "selection_loss": [0.5, 0.3, 0.32, 0.34, 0.36, 0.38, 0.4],
            },
            "trusted",
            2,
        ),
    ],
)
def test_each_kind_is_one_line_with_its_first_epoch(columns, kind: str, epoch: int) -> None:
    found = complaints(rows(**columns), "diw")
    assert list(found) == [kind]
    assert found[kind].startswith(f"from epoch {epoch}: ")
    assert any(advice in found[kind] for advice in ("try", "train for fewer", "check them"))


def test_healthy_weights_and_epochs_without_weights_are_left_in_peace() -> None:
    healthy = rows(
        ess=[0.4] * 8,
        share_zero=[0.3] * 8,
        share_bound=[0.05] * 8,
        train_loss=[1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3],
        selection_loss=[0.5, 0.4, 0.41, 0.4, 0.42, 0.41, 0.4, 0.41],
    )
    assert complaints(healthy, "diw") == {}
    assert complaints([{"epoch": 1, "weighted": False, "ess": 0.01}], "diw") == {}
    assert complaints([], "diw") == {}


def test_a_loss_close_to_zero_may_double() -> None:
    falling = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    small = rows(train_loss=falling, selection_loss=[0.01, 0.012, 0.014, 0.016, 0.018, 0.02])
    assert complaints(small, "diw") == {}
