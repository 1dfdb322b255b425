"""Specs and shifts in words, for titles and captions."""

from pathlib import Path

from diw.errors import UsageError
from diw.pages import count, data_title
from diw.runs import RunSpec
from diw.shifts import (
    Annotator,
    Contaminated,
    Covariate,
    Instance,
    LongTail,
    Matrix,
    Pair,
    Prior,
    Region,
    Stage,
    Support,
    Symmetric,
    number_text,
    parse_shift,
)

_MODELS = {"lenet5": "LeNet-5", "resnet32": "ResNet-32", "mlp": "MLP", "auto": "default network"}


def describe(spec: RunSpec) -> tuple[str, str]:
    """Say in words what a run did: a title (shift and data) and the protocol (network, sizes).

    Unknown names stay as they are.
    """
    parts = ["Embedded subset"] if spec.data == "embedded" else []
    parts.append(_MODELS.get(spec.model, spec.model))
    if spec.trusted is not None:
        parts.append(_trusted(spec.trusted))
    if spec.verified is not None:
        parts.append(f"rows verified in {Path(spec.verified).name}")
    parts.append(count(spec.recipe.epochs, "epoch"))
    if (spec.recipe.passes or 1) > 1:
        parts[-1] += f" of {spec.recipe.passes} passes"
    parts.append(f"batches of {spec.recipe.batch_size}")
    data, shift = data_title(spec.data), shift_in_words(spec.shift)
    plain = spec.shift == "none"
    title = f"{data}, {shift}" if plain else f"{shift[0].upper()}{shift[1:]} on {data}"
    return title, ", ".join(parts)


def shift_in_words(shift: str) -> str:
    """`symmetric:0.4` as "40% symmetric label noise"; what cannot be read as it was given."""
    try:
        stages = parse_shift(shift).stages
    except UsageError:
        return f"shift {shift}"
    return " and ".join(map(_stage_in_words, stages)) or "no simulated shift"


def short_shift(shift: str) -> str:
    """`pair:0.3` as "0.3 pair", `prior:0.2,100` as "ratio 100:1"; others as they are."""
    match parse_shift(shift).stages:
        case (Pair() | Symmetric() as noise,):
            return f"{noise.values} {noise.name}"
        case (Prior(ratio=ratio),):
            return f"ratio {number_text(ratio)}:1"
        case _:
            return shift


def _trusted(trusted: int | str) -> str:
    """A number, "N/class", or a file."""
    if isinstance(trusted, int):
        return count(trusted, "trusted sample")
    number, slash, _ = trusted.partition("/class")
    if slash and number.isdecimal():
        return f"{count(int(number), 'trusted sample')} per class"
    return f"trusted: {trusted}"


def _stage_in_words(stage: Stage) -> str:
    match stage:
        case Symmetric(rate=rate):
            return f"{_percent(rate)} symmetric label noise"
        case Pair(rate=rate):
            return f"{_percent(rate)} pair-flip label noise"
        case Instance(rate=rate):
            return f"{_percent(rate)} instance-dependent label noise"
        case Annotator(rate=rate):
            return f"{_percent(rate)} errors of an annotator"
        case Matrix(matrix=str(source)):
            return f"label noise by {source}"
        case Contaminated(mixture=str(source)):
            return f"contamination of the classes by {source}"
        case Contaminated(mixture=float() | int() as rate):
            return f"{_percent(rate)} contamination of the classes"
        case Prior(minority=minority, ratio=ratio):
            return f"class-prior shift ({_percent(minority)} minority, {number_text(ratio)}:1)"
        case LongTail(ratio=ratio):
            return f"long-tailed classes ({number_text(ratio)}:1)"
        case Covariate(strength=strength):
            return f"covariate shift (strength {number_text(strength)})"
        case Support(share=share):
            return f"support shift ({_percent(share)} of the classes missing)"
        case Region(share=share):
            return f"support shift ({_percent(share)} of the inputs missing)"
        case _:
            return f"shift {stage.text}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.4g}%"
