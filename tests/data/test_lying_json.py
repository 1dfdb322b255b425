"""JSON Lines as programs and logs write them: read as what they are, or refused in a line."""

import gzip
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.data import load
from diw.data.tables import read_json_lines
from diw.errors import UsageError

PLAIN = '{"x": 1.5, "word": "red", "label": "a"}\n{"x": 2.5, "word": "tea", "label": "b"}\n'
MEANT = {"x": ["1.5", "2.5"], "word": ["red", "tea"], "label": ["a", "b"]}
NO_OBJECT = "line 1 is no JSON object; write one a line"


def cells(first: str, second: str) -> str:
    """A file with these two values of x, as JSON writes them."""
    return f'{{"x": {first}, "label": "a"}}\n{{"x": {second}, "label": "b"}}\n'


def labels(*values: str) -> str:
    """A file with these labels."""
    return "".join(f'{{"x": {row}, "label": {value}}}\n' for row, value in enumerate(values))


# A file, and the columns meant (None: those of PLAIN), the words of x or of the labels, or the
# refusal.
FILES = {
    "plain": (PLAIN, None),
    "UTF-8 with a mark": (PLAIN.encode("utf-8-sig"), None),
    "UTF-16": (PLAIN.encode("utf-16"), None),
    "Windows": (PLAIN.replace("\n", "\r\n"), None),
    "old Mac": (PLAIN.replace("\n", "\r"), None),
    "no end of line at the end": (PLAIN.rstrip(), None),
    "empty lines": (PLAIN.replace("\n", "\n\n"), None),
    "another order": (PLAIN.replace('"x": 2.5, "word": "tea"', '"word": "tea", "x": 2.5'), None),
    "blanks around": (PLAIN.replace('"red"', '" red "').replace('"x"', '" x"'), None),
    "escapes": (PLAIN.replace("red", "\\u0072ed"), None),
    "numbers as text": (PLAIN.replace("1.5", '"1.5"'), None),
    "what a line lacks": ('{"label": "a"}\n{"x": 1, "label": "b"}\n', {"x": [None, "1"]}),
    "what later lines lack": ('{"label": "a", "x": 1}\n{"label": "b"}\n', {"x": ["1", None]}),
    "null": (cells("null", "1"), {"x": [None, "1"]}),
    "NaN of Python": (cells("NaN", "1"), {"x": [None, "1"]}),
    "NA of R": (cells('"NA"', "1"), {"x": [None, "1"]}),
    "nothing": (cells('""', "1"), {"x": [None, "1"]}),
    "truth values": (cells("true", "false"), {"x": ["True", "False"]}),
    "exponents": (cells("1e3", "1E-2"), {"x": ["1000.0", "0.01"]}),
    "large whole numbers": (cells("9007199254740993", "1"), {"x": ["9007199254740993", "1"]}),
    "German numbers": (cells('"1.234,5"', '"0,5"'), {"x": ["1.234,5", "0,5"]}),
    "accents in two forms": (labels('"caf\\u00e9"', '"cafe\\u0301"', '"tea"'), "cafe"),
    "labels that are numbers": (labels("0", "1", "1.0"), {"label": ["0", "1", "1.0"]}),
    "large labels": (labels("9007199254740993", "9007199254740992"), "two"),
    "a line end within": (labels('"a\\nb"', '"c"'), {"label": ["a\nb", "c"]}),
    "infinite": (cells("Infinity", "1"), "inf in row 0 of column 'x' is too large"),
    "beyond": (cells("1e400", "1"), "inf in row 0 of column 'x' is too large"),
    "thousands between commas": (cells('"1,200"', '"950"'), {"x": ["1,200", "950"]}),
    "a key twice": ('{"x": 1, "x": 2, "label": "a"}\n', "line 1: two columns are named 'x'"),
    "a key in two forms": (
        '{"caf\\u00e9": 1, "cafe\\u0301": 2, "label": "a"}\n',
        "line 1: two columns are named 'café'",
    ),
    "a key with a blank": ('{"x": 1, "x ": 2, "label": "a"}\n', "two columns are named 'x'"),
    "half a character": (labels('"\\ud800"', '"a"'), "holds half of a character"),
    "half a character in a key": ('{"\\ud800": 1, "label": "a"}\n', "holds half of a character"),
    "two spellings": (labels("true", '"true"', '"b"'), "differ in case or blanks only"),
    "a missing label": (labels('"a"', "null", '"b"'), "the label in row 1 is missing"),
    "a label that is not there": ('{"x": 1}\n' + PLAIN, "the label in row 0 is missing"),
    "one class": (labels('"a"', '"a"'), "at least 2 are needed"),
    "another name of the label": (
        PLAIN.replace("label", "Klasse"),
        "say which column is the label",
    ),
    "lists": (cells("[1, 2]", "[3, 4]"), "'x' in line 1 is a list or an object; leave it out"),
    "objects": (cells('{"a": 1}', "1"), "'x' in line 1 is a list or an object; leave it out"),
    "deep": (cells("[" * 9999 + "]" * 9999, "1"), NO_OBJECT),
    "too many digits": (cells("1" * 9999, "1"), NO_OBJECT),
    "an array": (json.dumps([{"x": 1, "label": "a"}]), NO_OBJECT),
    "arrays": ('[1, "a"]\n[2, "b"]\n', NO_OBJECT),
    "several lines each": (json.dumps({"x": 1, "label": "a"}, indent=1), NO_OBJECT),
    "two in a line": (PLAIN.replace("\n", ""), NO_OBJECT),
    "commas between": (PLAIN.replace("\n", ",\n"), NO_OBJECT),
    "record separators": (PLAIN.replace('{"x', '\x1e{"x'), NO_OBJECT),
    "a comment": ("// of 2020\n" + PLAIN, NO_OBJECT),
    "Python's words": ("{'x': 1, 'label': None}\n", NO_OBJECT),
    "leading zeros": (cells("007", "1"), NO_OBJECT),
    "CSV": ("x,label\n1,a\n", NO_OBJECT),
    "a web page": ("<html></html>\n", NO_OBJECT),
    "zeros of a full disk": (b"\0" * 300, NO_OBJECT),
    "cut": (PLAIN[:-5], "line 2 is no JSON object"),
    "Latin-1": (labels('"für"', '"b"').encode("latin-1"), "--encoding latin-1"),
    "GeoJSON": (
        '{"type": "FeatureCollection", "features": []}\n',
        "'features' in line 1 is a list",
    ),
    "no lines": ("\n\n", "no rows"),
    "no keys": ("{}\n{}\n", "no rows"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_lines_as_programs_write_them(tmp_path, name, packed):
    content, meant = FILES[name]
    content = content.encode() if isinstance(content, str) else content
    path = tmp_path / ("a.jsonl.gz" if packed else "a.jsonl")
    path.write_bytes(gzip.compress(content) if packed else content)
    if meant in ("cafe", "two"):
        assert len(load(path).train.classes) == 2
    elif isinstance(meant, str):
        with pytest.raises(UsageError, match=re.escape(meant)) as error:
            load(path)
        assert "\n" not in str(error.value)
    else:
        columns = read_json_lines(path).columns
        assert {key: columns[key] for key in meant or MEANT} == (meant or MEANT)
        load(path)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.booleans())
def test_any_text_is_read_as_it_is_or_refused(tmp_path_factory, words, escaped):
    """Without blanks around it, its accents in one form; what stands for nothing is missing."""
    path = tmp_path_factory.mktemp("json") / "a.jsonl"
    path.write_text(
        "".join(json.dumps({"x": word}, ensure_ascii=escaped) + "\n" for word in words),
        encoding="utf-8",
    )
    found = read_json_lines(path).columns["x"]
    assert len(found) == len(words)
    for word, cell in zip(words, found, strict=True):
        assert cell in (None, unicodedata.normalize("NFC", word.strip()))
