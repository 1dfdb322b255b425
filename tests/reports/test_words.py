import pytest

from diw.reports.words import describe, shift_in_words, short_shift

from .factory import make_spec


def test_a_spec_in_words() -> None:
    assert describe(make_spec()) == (
        "40% symmetric label noise on Fashion-MNIST",
        "Embedded subset, LeNet-5, 500 trusted samples, 12 epochs, batches of 256",
    )


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        ("none", "no simulated shift"),
        ("pair:0.3", "30% pair-flip label noise"),
        ("symmetric:0.125", "12.5% symmetric label noise"),
        ("prior:0.2,100", "class-prior shift (20% minority, 100:1)"),
        (
            "prior:0.2,1e+2+pair:0.3",
            "class-prior shift (20% minority, 100:1) and 30% pair-flip label noise",
        ),
        ("longtail:10", "long-tailed classes (10:1)"),
        ("contaminated:0.2", "20% contamination of the classes"),
        ("contaminated:file.csv", "contamination of the classes by file.csv"),
        ("covariate:2,3", "covariate shift (strength 2)"),
        ("support:0.2", "support shift (20% of the classes missing)"),
        ("region:0.25,3", "support shift (25% of the inputs missing)"),
        ("matrix:noise.csv", "label noise by noise.csv"),
        ("prior:", "shift prior:"),
        ("newer:1", "shift newer:1"),
    ],
)
def test_shifts_in_words(shift: str, words: str) -> None:
    assert shift_in_words(shift) == words


def test_trusted_samples_in_words() -> None:
    assert "10 trusted samples per class" in describe(make_spec(trusted="10/class"))[1]
    assert "trusted" not in describe(make_spec(trusted=None))[1]


def test_own_data_keep_their_names() -> None:
    title, protocol = describe(make_spec(data="mine.csv", trusted="good.csv", model="a:b"))
    assert title.endswith("on mine.csv")
    assert protocol.startswith("a:b, trusted: good.csv")


@pytest.mark.parametrize(
    ("shift", "short"),
    [
        ("pair:0.3", "0.3 pair"),
        ("symmetric:0.4", "0.4 symmetric"),
        ("prior:0.2,200", "ratio 200:1"),
        ("prior:0.2,100,4000", "ratio 100:1"),
        ("longtail:10", "longtail:10"),
        ("prior:0.2,100+pair:0.3", "prior:0.2,100+pair:0.3"),
    ],
)
def test_shifts_in_short(shift: str, short: str) -> None:
    assert short_shift(shift) == short
