"""Lightning: a callback that gives a `LightningModule` its objective."""

import copy
from collections.abc import Mapping
from math import isfinite
from typing import Any

from torch import nn

from diw.config import DEFAULT_METHOD
from diw.errors import UsageError
from diw.integrations import missing
from diw.methods import Method
from diw.metrics import weight_summary
from diw.objective import Objective
from diw.step.look import unwrap

try:
    import lightning.pytorch as pl
except ImportError:
    raise missing("lightning", "lightning") from None


class ImportanceWeighting(pl.Callback):
    """Weights the loss of a `LightningModule`, whose `training_step` calls `self.objective(batch)`.

    It keeps the clock (epochs, optimiser steps, gradient accumulation), logs the weights,
    and saves the state of the weighting in the Trainer's checkpoints.

    Example:
        >>> class Classifier(pl.LightningModule):
        ...     def training_step(self, batch, batch_idx):
        ...         return self.objective(batch).loss  # was: cross_entropy(self(x), y)
        >>> trainer = pl.Trainer(callbacks=[ImportanceWeighting((x_trusted, y_trusted))])
    """

    def __init__(
        self,
        trusted: Any,
        method: str | Method = DEFAULT_METHOD,
        *,
        network: str | None = None,
        log: str | None = "diw/",
        **options: Any,
    ):
        """Choose what to weigh, and how.

        Args:
            trusted: The trusted samples, as for `diw.Objective`.
            method: A method's name or an instance.
            network: The name of the submodule that maps inputs to logits, such as `"net"`; None for
                the module's own `forward`.
            log: What the names of logged values begin with; None logs nothing.
            options: The other arguments of `diw.Objective`: `criterion`, `train`, `seed`, …
        """
        super().__init__()
        self._trusted = trusted
        self._method = method
        self._network = network
        self._log = log
        self._options = options
        self._objective: Objective | None = None
        self._state: Mapping[str, Any] | None = None
        self._steps = 0

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Make the objective, once for each network, and hand it to the module as `objective`."""
        network = unwrap(_submodule(pl_module, self._network))
        if self._objective is None or self._objective.network is not network:
            method = copy.deepcopy(self._method)  # what it learns of one network stays there
            self._objective = Objective(network, method, self._trusted, **self._options)
        pl_module.objective = self._objective  # type: ignore[assignment]

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Go on where the checkpoint was written, and tell the objective how far it is."""
        if self._state is not None:
            self.objective.load_state_dict(self._state)
            self._state = None
        self._steps = trainer.global_step
        steps = float(trainer.estimated_stepping_batches)
        if isfinite(steps):
            self.objective.for_training(int(steps))

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell the objective the epoch, which it counts from one."""
        self.objective.start_epoch(trainer.current_epoch + 1)
        self.objective.latest = None

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Move the clock if the optimiser made a step, and log the weights."""
        if trainer.global_step > self._steps:
            self.objective.after_step()
            self._steps = trainer.global_step
        latest = self.objective.latest
        if latest is None and self.objective.method.trains_on != "trusted":
            raise UsageError(
                "training_step: it did not call the objective, so nothing is weighted; "
                "use self.objective(batch).loss"
            )
        if latest is not None and latest.train is not None and self._log is not None:
            summary = weight_summary(latest.train.cpu().numpy())
            pl_module.log_dict({self._log + name: value for name, value in summary.items()})

    def state_dict(self) -> dict[str, Any]:
        """The objective's state, for a checkpoint."""
        return {} if self._objective is None else {"objective": self._objective.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep a checkpoint's state until the fit starts."""
        self._state = state_dict.get("objective")

    @property
    def objective(self) -> Objective:
        """The objective, once the Trainer has set things up."""
        if self._objective is None:
            raise UsageError("ImportanceWeighting: it has no objective before Trainer.fit")
        return self._objective


def _submodule(module: pl.LightningModule, name: str | None) -> nn.Module:
    if name is None:
        if type(module).forward is pl.LightningModule.forward:
            raise UsageError(
                "network: the module has no forward of its own; name the submodule that maps "
                'inputs to logits, such as network="net"'
            )
        return module
    try:
        return module.get_submodule(name)
    except AttributeError:
        known = ", ".join(key for key, _ in module.named_children())
        raise UsageError(f"network: there is no submodule {name!r}; there are {known}") from None
