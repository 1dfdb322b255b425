"""Hugging Face: a `Trainer` whose loss is weighted."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import IterableDataset

from diw.config import DEFAULT_METHOD
from diw.deprecated import old_name
from diw.errors import UsageError
from diw.integrations import missing
from diw.methods import Method
from diw.metrics import weight_summary
from diw.objective import Objective
from diw.step.batch import LABELS
from diw.step.look import unwrap
from diw.step.rows import IndexedDataset

try:
    from transformers import Trainer, TrainerCallback
    from transformers.trainer_utils import get_last_checkpoint
except ImportError:
    raise missing("transformers", "hf") from None

STATE = "diw.pt"
"""The objective's state, in the folder of a checkpoint."""
INDEX = "index"
"""The column that says which training sample a row is, for methods that remember samples: the
numbers from 0 on, in any order. A map-style data set without it gets it here."""


class ImportanceWeightedTrainer(Trainer):
    """A `Trainer` that weights training samples so that they look like the trusted ones.

    Everything else is `Trainer`'s: optimiser, schedule, precision, accumulation, evaluation,
    checkpoints (the state of the weighting is saved with them).

    Example:
        >>> trainer = ImportanceWeightedTrainer(
        ...     model=model, args=args, train_dataset=train, data_collator=collator,
        ...     trusted_dataset=trusted,
        ... )
    """

    def __init__(
        self,
        *args: Any,
        trusted_dataset: Any = None,
        method: str | Method = DEFAULT_METHOD,
        objective_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        """Set up.

        Args:
            args: As for `Trainer`.
            trusted_dataset: The trusted samples: a data set like `train_dataset`.
            method: A method's name or an instance.
            objective_options: Other arguments of `diw.Objective`: `criterion`, `unit`, `seed`, …
            kwargs: As for `Trainer`.
        """
        super().__init__(*args, **kwargs)
        if trusted_dataset is None:
            raise UsageError("trusted_dataset: give a data set like train_dataset")
        if self.compute_loss_func is not None:
            raise UsageError(
                "compute_loss_func: the objective computes the loss; give one loss per sample as "
                'objective_options={"criterion": …}'
            )
        self.model_accepts_loss_kwargs = False  # the loss is a mean over the batch
        model: Any = self.model
        network = unwrap(model)
        self.objective = Objective(
            network,
            method,
            trusted_dataset,
            collate=_known_columns(network, self.data_collator),
            **dict(objective_options or {}),
        )
        self.add_callback(_Clock(self.objective))

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As `Trainer.train`; a checkpoint also brings back the state of the weighting."""
        found = resume_from_checkpoint
        if found is True:
            found = get_last_checkpoint(str(self.args.output_dir))
        if found:
            state = Path(found) / STATE
            if not state.exists():
                raise UsageError(f"resume_from_checkpoint: {found} was not written with weights")
            self.objective.load_state_dict(torch.load(state, weights_only=True))
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def get_train_dataloader(self) -> Any:
        """As `Trainer`'s; its batches also say which training samples they hold."""
        dataset, collate = self.train_dataset, self.data_collator
        self._check_places(dataset)
        if not _lacks_index(dataset):
            return super().get_train_dataloader()
        self.train_dataset, self.data_collator = IndexedDataset(dataset), _with_index(collate)
        try:
            return super().get_train_dataloader()
        finally:
            self.train_dataset, self.data_collator = dataset, collate

    def _check_places(self, dataset: Any) -> None:
        """Refuse places that are not in the training set, before a step counts on them."""
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
            return
        if not _lacks_index(dataset):
            _check_index(dataset)
        places = self.objective.task.trusted_index
        if places is not None and len(places) and int(places.max()) >= len(dataset):
            raise UsageError(
                f"trusted_index: {int(places.max())} is no row of train_dataset, which has rows "
                f"0..{len(dataset) - 1}"
            )

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The weighted loss of a training batch; of any other batch, what `Trainer` computes."""
        if not torch.is_grad_enabled():
            inputs = {name: value for name, value in inputs.items() if name != INDEX}
            return super().compute_loss(model, inputs, return_outputs=return_outputs)
        result = self.objective(inputs, model=model)
        return (result.loss, result.outputs) if return_outputs else result.loss

    def prediction_step(
        self, model: nn.Module, inputs: dict[str, Any], *args: Any, **more: Any
    ) -> Any:
        """As `Trainer.prediction_step`, for data that may have an index."""
        inputs = {name: value for name, value in inputs.items() if name != INDEX}
        return super().prediction_step(model, inputs, *args, **more)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """As `Trainer.log`, with the weights of the latest batch beside the training loss."""
        latest = self.objective.latest
        if "loss" in logs and latest is not None and latest.train is not None:
            summary = weight_summary(latest.train.cpu().numpy())
            logs = {**logs, **{f"diw_{name}": value for name, value in summary.items()}}
        super().log(logs, *args, **kwargs)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        names = self._signature_columns or []
        self._signature_columns = names if INDEX in names else [*names, INDEX]


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)


class _Clock(TrainerCallback):
    """Tells the objective how long it trains, about epochs and steps, and saves it."""

    def __init__(self, objective: Objective):
        self._objective = objective

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The Trainer knows by now how many steps there will be."""
        if state.max_steps > 0:
            self._objective.for_training(int(state.max_steps))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Epochs count from one; the Trainer has them as numbers of passes so far."""
        self._objective.start_epoch(int((state.epoch or 0.0) + 1e-6) + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Once per optimiser step, whatever is accumulated."""
        self._objective.after_step()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Beside what the Trainer has just written."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            torch.save(self._objective.state_dict(), folder / STATE)


def _lacks_index(dataset: Any) -> bool:
    """Whether it is a map-style data set of mappings that do not say which sample they are."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        return False
    first = dataset[0] if len(dataset) else None
    return isinstance(first, Mapping) and INDEX not in first


def _check_index(dataset: Any) -> None:
    """Refuse a column `index` that is not the numbers of the samples, in any order."""
    if INDEX in (getattr(dataset, "column_names", None) or ()):
        given = dataset[INDEX]
    else:
        given = [dataset[row][INDEX] for row in range(len(dataset))]
    numbers = np.asarray(given)
    if not np.array_equal(np.sort(numbers, axis=None), np.arange(len(dataset))):
        raise UsageError(
            f"train_dataset: its column {INDEX!r} does not number the samples 0..{len(dataset) - 1}"
            ", each once; rename or remove it, and each sample is known by its place"
        )


def _with_index(collate: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A collate function that keeps the index, whatever `collate` makes of the other columns."""

    def collated(samples: list[Any]) -> Any:
        index = torch.tensor([sample[INDEX] for sample in samples])
        others = [{n: v for n, v in sample.items() if n != INDEX} for sample in samples]
        return {**collate(others), INDEX: index}

    return collated


def _known_columns(network: nn.Module, collate: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A collate function that first leaves out the columns which the network does not take."""
    names = set(inspect.signature(network.forward).parameters) | {*LABELS, "label_ids"}

    def collated(samples: list[Any]) -> Any:
        return collate([{n: v for n, v in sample.items() if n in names} for sample in samples])

    return collated
