"""What a public repository has, and that it says the same as the rest."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
HOOK = re.compile(r"^\s*\$\(BIN\)/([\w-]+)", re.MULTILINE)


def test_the_hooks_before_a_commit_are_what_make_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert lint
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"].split("/")[2].split()[0] for hook in hooks] == HOOK.findall(lint[1])


def test_the_workflow_runs_what_ci_runs_with_the_versions_we_support() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = {name: [step.get("run") for step in job["steps"]] for name, job in jobs.items()}
    assert ".ci/run" in commands["ci"]
    assert "make test-lowest" in commands["lowest"]
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f">={jobs['ci']['strategy']['matrix']['python'][0]}" == lowest


def test_templates_and_policies_are_there() -> None:
    for name in ("SECURITY.md", "CITATION.cff", "LICENSE", ".github/PULL_REQUEST_TEMPLATE.md"):
        assert (ROOT / name).stat().st_size > 0
    for form in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        assert isinstance(yaml.safe_load(form.read_text()), dict)


def test_the_support_policy_names_the_versions_that_are_required() -> None:
    page = (ROOT / "docs/policy.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    shown = {"Python": project["requires-python"].lstrip(">=")}
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    floors = dict(entry.split(">=") for entry in wanted if ">=" in entry)
    names = ("torch", "numpy", "scipy", "scikit-learn", "lightning", "transformers")
    shown |= {name: floors[name] for name in names}
    titles = {"torch": "PyTorch"}
    for name, floor in shown.items():
        title = titles.get(name, name)
        assert re.search(rf"^\| {title}\b.*\| {re.escape(floor)} and newer", page, re.M | re.I), (
            name
        )


def test_the_figure_of_the_first_page_was_made_from_its_template() -> None:
    before, after = (ROOT / "scripts/idea_template.html").read_text().split("DATA_HERE")
    figure = (ROOT / "docs/figures/idea.html").read_text()
    assert figure.startswith(before)
    assert figure.endswith(after)
    assert len(figure) < 200_000
    assert "http" not in figure
