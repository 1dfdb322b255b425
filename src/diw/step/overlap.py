"""Are the trusted samples trained on? Seen from the samples, in a loop that does not say so.

Methods that judge a sample by its loss compare training samples with trusted ones. A trusted sample
that is not trained on has the loss of an unseen sample, which is higher than that of an intact
training sample; so wrong labels, whose losses are higher too, look trusted.
"""

import torch
from torch import Tensor

from diw.step.batch import Batch, first_tensor
from diw.step.rows import Rows

MOST = 1_000_000
"""Training samples looked at, at most."""
ASKED = 64
"""Trusted samples looked for among them."""
COLUMNS = 512
"""Values of a sample that are looked at, evenly spaced."""
EQUAL = 1e-9
"""Relative difference below which two samples are one."""


class Overlap:
    """Marks of the training samples of an epoch, among which trusted ones are then looked for.

    A mark is one number: a projection of the inputs on a fixed direction. Equal inputs have
    equal marks; others have the same mark with a chance of about 1e-9.
    """

    def __init__(self) -> None:
        self._marks: list[Tensor] = []
        self._count = 0

    def see(self, batch: Batch) -> None:
        """Keep the marks of a training batch."""
        if self._count < MOST:
            marks = _marks(batch)
            self._marks.append(marks)
            self._count += len(marks)

    def found(self, trusted: Rows) -> bool | None:
        """Whether any of the trusted samples was among those seen; None if none was seen."""
        if not self._marks:
            return None
        rows = torch.linspace(0, len(trusted) - 1, min(ASKED, len(trusted))).round().long()
        asked = _marks(Batch(*trusted.take(rows)))
        seen = torch.cat(self._marks).sort().values
        near = torch.searchsorted(seen, asked).clamp(max=len(seen) - 1)
        gaps = torch.minimum(
            (seen[near] - asked).abs(), (seen[(near - 1).clamp(min=0)] - asked).abs()
        )
        return bool((gaps <= EQUAL * asked.abs().clamp(min=1e-300)).any())


def _marks(batch: Batch) -> Tensor:
    """(n,) float64 on the CPU."""
    values = first_tensor(batch.inputs).detach().flatten(1)
    columns = torch.linspace(0, values.shape[1] - 1, min(COLUMNS, values.shape[1])).round().long()
    picked = values[:, columns.to(values.device)].cpu().double()
    direction = torch.cos(torch.arange(1, len(columns) + 1, dtype=torch.float64) ** 2)
    return (picked * direction).sum(1)
