"""Files for Label Studio and Argilla, and their exports, in the formats of their documentation."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from diw.errors import UsageError
from diw.trust import Draw, read_sheets
from tests.own_data import done, write_images
from tests.trust.made import CLASSES, write_table


@pytest.fixture
def right(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_table(Path("x.csv"))


def drawn(tool: str, *more: str) -> Draw:
    done(
        *("trust", "draw", "x.csv", "--label", "kind", "-n", "20", "--out", "check"),
        "--to",
        tool,
        *more,
    )
    return Draw.load(Path("check"))


def exported(task: dict, number: int, choices: list[str], person: int, cancelled: bool = False):
    """A task as Label Studio exports it, https://labelstud.io/guide/task_format."""
    result = {
        "id": f"r{number}",
        "type": "choices",
        "value": {"choices": choices},
        "origin": "manual",
        "to_name": "sample",
        "from_name": "right",
    }
    annotation = {
        "id": number,
        "completed_by": person,
        "result": [result] if choices else [],
        "was_cancelled": cancelled,
        "ground_truth": False,
        "created_at": "2021-03-09T22:16:08.728353Z",
        "lead_time": 4.288,
    }
    return {"id": number, "annotations": [annotation], "predictions": [], "project": 83, **task}


def test_label_studio_and_back(right) -> None:
    draw = drawn("label-studio")
    tasks = json.loads(Path("check/label-studio.json").read_text())
    assert len(tasks) == 20
    assert "predictions" not in tasks[0]  # they would show the given label
    config = ElementTree.parse("check/label-studio.xml").getroot()
    assert [one.get("value") for one in config.iter("Choice")] == list(CLASSES)
    shown = {one.get("value")[1:] for one in config.iter("Text")}
    assert shown <= tasks[0]["data"].keys()
    assert {config.find("Choices").get("toName")} <= {
        one.get("name") for one in config.iter("Text")
    }
    names = [CLASSES[right[row]] for row in draw.rows]
    export = [exported(task, number, [names[number]], 10) for number, task in enumerate(tasks)]
    export[3] = exported(tasks[3], 3, [], 10, cancelled=True)
    Path("export.json").write_text(json.dumps(export[:-1]))
    ((name, found),) = read_sheets([Path("export.json")], draw).items()
    assert name == "export.json"
    assert len(found) == 19
    assert (found[3].right, found[3].note) == (None, "cannot tell")
    assert [found[place].right for place in (0, 1, 2)] == [right[row] for row in draw.rows[:3]]
    out = done("trust", "read", "export.json", "--draw", "check", "--out", "v.csv")
    assert "18 of 20 drawn rows checked, of 300 in all; 1 cannot tell" in out


def test_two_annotators_of_one_file_are_two_sheets(right) -> None:
    draw = drawn("label-studio")
    tasks = json.loads(Path("check/label-studio.json").read_text())
    export = [exported(task, number, ["ant"], 1) for number, task in enumerate(tasks)]
    for one, other in zip(export, tasks, strict=True):
        one["annotations"] += exported(other, 0, ["bee"], 2)["annotations"]
    Path("export.json").write_text(json.dumps(export))
    assert list(read_sheets([Path("export.json")], draw)) == ["export.json (1)", "export.json (2)"]


def test_given_labels_are_predictions_where_that_is_asked(right) -> None:
    draw = drawn("label-studio", "--show-given")
    task = json.loads(Path("check/label-studio.json").read_text())[0]
    (prediction,) = task["predictions"]
    assert prediction["result"][0]["value"] == {"choices": [CLASSES[draw.given[0]]]}
    assert {"from_name", "to_name", "type", "value"} <= prediction["result"][0].keys()


def test_images_are_in_the_tasks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(Path("photos"), 6, 0)
    done("trust", "draw", "photos", "-n", "6", "--out", "check", "--to", "label-studio")
    tasks = json.loads(Path("check/label-studio.json").read_text())
    assert all(task["data"]["image"].startswith("data:image/png;base64,") for task in tasks)
    assert ElementTree.parse("check/label-studio.xml").find("Image").get("value") == "$image"


def test_argilla_and_back(right) -> None:
    draw = drawn("argilla", "--show-given")
    records = json.loads(Path("check/argilla.json").read_text())
    keys = ["id", "fields", "metadata", "suggestions", "responses", "vectors"]
    assert list(records[0]) == keys
    assert records[0]["suggestions"]["right"]["value"] == CLASSES[draw.given[0]]
    for record, row in zip(records, draw.rows, strict=True):
        said = {"value": CLASSES[right[row]], "user_id": "0b4e"}
        record |= {"responses": {"right": [said]}, "_server_id": "a1"}
    Path("records.json").write_text(json.dumps(records))
    ((_, found),) = read_sheets([Path("records.json")], draw).items()
    assert [one.right for one in found.values()] == [right[row] for row in draw.rows]


def test_json_lines_and_back(right) -> None:
    draw = drawn("jsonl")
    lines = [json.loads(line) for line in Path("check/check.jsonl").read_text().splitlines()]
    assert "label" not in lines[0]
    for line, row in zip(lines, draw.rows, strict=True):
        line["right"] = CLASSES[right[row]]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ((_, found),) = read_sheets([Path("a.jsonl")], draw).items()
    assert [one.right for one in found.values()] == [right[row] for row in draw.rows]


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 1}', '[{"annotations": [{}]}]'])
def test_other_json_is_refused_in_a_line(right, content: str) -> None:
    draw = drawn("jsonl")
    Path("a.json").write_text(content)
    with pytest.raises(UsageError, match=r"a\.json: (is neither|is a sheet of other data)"):
        read_sheets([Path("a.json")], draw)
