"""What a person said of training labels, applied to the data of a run.

Corrections are applied after a simulated shift, because what was checked are the labels as they
were trained on. `diw.data.marks` reads them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from diw.data.marks import (
    Contents,
    Correction,
    Key,
    check_contents,
    check_label,
    class_number,
    finder,
    named,
)
from diw.data.split import Split
from diw.errors import UsageError


def corrected(
    split: Split,
    keys: Sequence[Key],
    corrections: Mapping[Key, Correction],
    contents: Contents | None = None,
) -> tuple[Split, str]:
    """The split with corrected labels and without dropped rows, and what changed in words.

    Args:
        split: The data of a run.
        keys: (n,) file and row of each training row.
        corrections: From `read_corrections`.
        contents: Fingerprints of training rows, to be compared with those of the corrections.
    """
    train = split.train
    targets = train.targets.clone()
    trusted = set(split.trusted_index.tolist())
    keep = torch.ones(len(targets), dtype=torch.bool)
    changes: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()
    place_of = finder(keys)
    marked = {place_of(key): one for key, one in corrections.items()}
    marked = {place: one for place, one in marked.items() if place is not None}
    if not marked:
        raise UsageError(
            f"corrections: none of their rows is in the training data; rows there are named like "
            f"{', '.join(filter(None, keys[0]))}"
        )
    check_contents("corrections", keys, marked, contents)
    for place, one in marked.items():
        where = f"corrections: {named(keys[place])}"
        given = train.classes[int(targets[place])]
        if place in trusted:
            raise UsageError(f"{where}: is a trusted row; correct it in its file")
        check_label(one, given, where)
        if one.mark == "wrong":
            targets[place] = class_number(one.correct, train.classes, where)
            changes[given, one.correct] += 1
        keep[place] = one.mark != "drop"
        counts[one.mark] += 1
    words = _in_words(counts, changes, len(corrections) - sum(counts.values()))
    return _rebuilt(split, targets, keep, words), words


def _rebuilt(split: Split, targets: torch.Tensor, keep: torch.Tensor, words: str) -> Split:
    places = torch.nonzero(keep).flatten()
    later = keep.long().cumsum(0) - 1  # where a kept row stands now

    def kept(values: torch.Tensor | None) -> torch.Tensor | None:
        return None if values is None else values[places]

    true = kept(split.true_labels)
    train = replace(split.train, targets=targets).subset(places)
    return replace(
        split,
        train=train,
        true_labels=true,
        flipped=None if true is None else train.targets != true,
        true_weights=kept(split.true_weights),
        trusted_index=later[split.trusted_index],
        rows=split.rows[places],
        facts={**split.facts, "corrections": words},
    )


def _in_words(counts: Counter[str], changes: Counter[tuple[str, str]], missing: int) -> str:
    """`12 labels changed (7 coat → shirt, …), 3 rows dropped, 40 confirmed`."""
    pairs = [f"{n} {a} → {b}" for (a, b), n in changes.most_common(5)]
    more = ", …" if len(changes) > 5 else ""
    detail = f" ({', '.join(pairs)}{more})" if pairs else ""
    text = (
        f"{counts['wrong']} labels changed{detail}, {counts['drop']} rows dropped, "
        f"{counts['right']} confirmed"
    )
    return text + (f"; {missing} are not training rows of this run" if missing else "")
