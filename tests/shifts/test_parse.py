import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.errors import UsageError
from diw.shifts import (
    Contaminated,
    Covariate,
    LongTail,
    Matrix,
    Pair,
    Prior,
    Shift,
    Symmetric,
    parse_shift,
)


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "symmetric:0.4",
        "pair:0.3",
        "pair:0.12345678901",
        "contaminated:0.2",
        "prior:0.2,100",
        "prior:0.2,100,4000",
        "longtail:50",
        "longtail:50,400",
        "covariate:1.5",
        "covariate:1.5,3",
        "support:0.2",
        "region:0.3",
        "region:0.3,12",
        "support:0.2+symmetric:0.3",
        "prior:0.2,100+pair:0.3",
        "longtail:10+symmetric:0.4+covariate:1",
    ],
)
def test_the_text_of_a_shift_is_what_it_was_parsed_from(text):
    assert parse_shift(text).text == text


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("none", ()),
        ("symmetric:0.4", (Symmetric(0.4),)),
        ("prior:0.2,100,4000+pair:0.3", (Prior(0.2, 100, 4000), Pair(0.3))),
        ("longtail:50+covariate:1.5,3", (LongTail(50), Covariate(1.5, 3))),
    ],
)
def test_the_numbers_of_a_text_are_fields_of_its_stages(text, stages):
    assert parse_shift(text) == Shift(stages)


def test_files_are_named_when_parsed_and_read_when_applied():
    matrix, mixture = parse_shift("matrix:a.npy+contaminated:b.csv").stages
    assert isinstance(matrix, Matrix)
    assert (matrix.name, matrix.matrix) == ("matrix", "a.npy")
    assert isinstance(mixture, Contaminated)
    assert (mixture.name, mixture.mixture) == ("contaminated", "b.csv")
    for text in ("matrix:nowhere.npy", "contaminated:nowhere.csv"):
        with pytest.raises(UsageError, match="no such file"):
            parse_shift(text).apply([0, 1], 2, 0)


def test_parsing_does_not_import_torch():
    code = "import sys; from diw.shifts import parse_shift; parse_shift('pair:0.3')"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)


def test_numbers_may_hold_a_plus():
    assert parse_shift("prior:0.2,1e+2+pair:0.1").text == "prior:0.2,100+pair:0.1"
    assert parse_shift(" none + pair:0.1 ").text == "pair:0.1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "choose none, symmetric:RATE"),
        ("noise:0.4", "choose none, symmetric:RATE"),
        ("pair:0.1+noise:0.4", "choose none, symmetric:RATE"),
        ("pair:0.1+", "choose none, symmetric:RATE"),
        ("none:1", "unknown 'none:1'"),
        ("symmetric", "write symmetric:RATE"),
        ("symmetric:x", "write symmetric:RATE"),
        ("symmetric:0.1,0.2", "write symmetric:RATE"),
        ("symmetric:1", r"lies in \[0, 1\), got 1"),
        ("pair:-0.1", r"lies in \[0, 1\), got -0.1"),
        ("pair:nan", "not finite"),
        ("contaminated:1.5", r"lies in \[0, 1\)"),
        ("contaminated", r"write contaminated:RATE\|FILE"),
        ("matrix", "write matrix:FILE"),
        ("prior:0.2", "write prior:MINORITY,RATIO"),
        ("prior:1,10", r"lies in \[0, 1\)"),
        ("prior:0.2,0.5", "at least 1"),
        ("prior:0.2,10,0", "number of rows"),
        ("prior:0.2,inf", "not finite"),
        ("longtail:0", "at least 1"),
        ("longtail:2,1.5", "number of rows"),
        ("covariate:-1", "not negative"),
        ("covariate:1,0.5", "column number"),
        ("support", "write support:SHARE"),
        ("support:1", r"share of support lies in \[0, 1\), got 1"),
        ("support:0.2,3", "write support:SHARE"),
        ("region:-0.1", r"share of region lies in \[0, 1\), got -0.1"),
        ("region:0.1,0.5", "column number"),
    ],
)
def test_wrong_texts_get_one_line_that_says_what_to_write(text, message):
    with pytest.raises(UsageError, match=message) as error:
        parse_shift(text)
    assert "\n" not in str(error.value)


@given(st.text(max_size=40))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    with suppress(UsageError):
        assert parse_shift(parse_shift(text).text).text == parse_shift(text).text
