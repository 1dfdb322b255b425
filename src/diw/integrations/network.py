"""A network as a learner of scikit-learn: what the classifier and the regressor share."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from diw.config import DEFAULT_METHOD, check_fields
from diw.errors import DIWWarning, UsageError
from diw.integrations import missing
from diw.integrations.vectors import encoder, is_number
from diw.labels.crossfit import Embedding
from diw.labels.evidence import read_verified
from diw.labels.fitting import judge_rows
from diw.methods import Method
from diw.models import make_model
from diw.objective import Objective
from diw.runs import Recipe
from diw.runs.spec import EPOCHS
from diw.seeding import derive
from diw.shifts.shift import row_numbers
from diw.step.batch import first_tensor
from diw.step.criteria import logits_of
from diw.step.rows import TensorRows
from diw.training.loop import Training, horizon

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import (
        assert_all_finite,
        check_consistent_length,
        check_random_state,
        column_or_1d,
    )
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None

SUSPECT = 0.5
"""Samples whose weight is below this share of the mean are suspects."""
LEAST_STEPS = 300
"""A network needs this many steps, however few samples there are."""
PASSES = 30
"""Passes over a training set that is large enough for them."""
PIECE = 4096
"""Rows per forward of a prediction."""
FARTHEST = 1e6
"""Standard deviations from the mean beyond which a number is taken to be this far: no output of a
network overflows."""

Module = nn.Module | str | Callable[..., nn.Module] | None


class NetworkLearner(BaseEstimator):
    """What the classifier and the regressor share."""

    def __init__(
        self,
        method: str | Method = DEFAULT_METHOD,
        module: Module = None,
        *,
        steps: int | None = None,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        trusted_share: float = 0.1,
        device: str = "cpu",
        random_state: Any = None,
    ):
        self.method = method
        self.module = module
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.trusted_share = trusted_share
        self.device = device
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, X_trusted: Any = None, y_trusted: Any = None, *, trusted: Any = None
    ) -> Self:
        """Train a network on X and y, weighted so that they look like the trusted samples.

        Args:
            X: (n, d) an array or a DataFrame, numbers and categories; or (n, …) images for a
                `module` of one's own.
            y: (n,) labels, or numbers.
            X_trusted: (m, d) trusted samples, with the columns of X. They are trained on too.
            y_trusted: (m,) their labels.
            trusted: Instead of these two: which rows of X are trusted, as a mask (n,) of truth
                values or of zeros and ones, or as row numbers (m,). In a cross-validation use a
                mask, which is split along with X.
        """
        return self._train(X, y, X_trusted, y_trusted, trusted, None)

    def _train(
        self, X: Any, y: Any, X_trusted: Any, y_trusted: Any, trusted: Any, verified: Any
    ) -> Self:
        self._check()
        samples, y = self._read(X, y)
        n = len(y)
        inputs, targets = self._encode(samples), self._encode_targets(y)
        chosen = given = None
        if verified is not None:
            if X_trusted is not None or y_trusted is not None or trusted is not None:
                raise UsageError("verified: these rows are the trusted ones; give no others")
            known: Any = self  # a regressor takes none
            chosen, right = read_verified(verified, known.classes_, n)
            if not len(chosen):
                raise UsageError("verified: no row is verified; give right labels, or leave it out")
            given, targets = targets, targets.copy()
            targets[chosen] = right
        elif X_trusted is not None or y_trusted is not None:
            if X_trusted is None or y_trusted is None or trusted is not None:
                raise UsageError("X_trusted: give X_trusted and y_trusted together, or trusted=")
            X_more, y_more = self._read_trusted(X_trusted, y_trusted)
            inputs = np.concatenate([inputs, self._encode(X_more, fit=False)])
            targets = np.concatenate([targets, self._encode_targets(y_more, fit=False)])
            chosen = np.arange(n, len(inputs))
        elif trusted is not None:
            chosen = row_numbers("trusted", trusted, n)
            if not len(chosen):
                raise UsageError("trusted: give at least one row")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if chosen is None:
            chosen = self._hold_out(targets, seed)
            warnings.warn(
                f"X_trusted: not given, so {len(chosen)} of the {n} samples, drawn at random, "
                "serve as trusted; labels that are wrong among them are followed",
                DIWWarning,
                stacklevel=3,
            )
        self.trusted_: NDArray[np.int64] = chosen
        with torch.random.fork_rng(devices=[]):
            before = None if given is None else torch.as_tensor(given[chosen])
            self._fit(torch.as_tensor(inputs), torch.as_tensor(targets), n, seed, before)
        if given is not None:
            self._judge(inputs, given, targets[chosen], seed)
        return self

    def _fit(
        self, inputs: Tensor, targets: Tensor, n: int, seed: int, before: Tensor | None
    ) -> None:
        """Train on tensors; the first n rows are those of X.

        Args:
            inputs: (N, …)
            targets: (N,)
            n: The number of rows of X.
            seed: Decides everything random.
            before: (m,) what the trusted rows were given before they were verified, if known.
        """
        rows, data = torch.as_tensor(self.trusted_), TensorRows(inputs, targets)
        trusted = inputs[rows], targets[rows]
        recipe, steps = self._recipe(len(inputs))

        def new_model() -> nn.Module:
            torch.manual_seed(derive(seed, "init"))
            made = _make_module(self.module, tuple(inputs.shape[1:]), self._outputs())
            return made.to(self.device)

        def pretrain(epochs: int) -> nn.Module:
            """The same network, trained without weights on other mini-batches."""
            model = new_model()
            plain = Objective(model, "uniform", trusted, criterion=self._criterion)
            before = derive(seed, "pretraining")
            for _ in Training(model, plain, data, replace(recipe, epochs=epochs), before).epochs():
                pass
            return model

        model = new_model()
        objective = Objective(
            model,
            self._weighting(),
            trusted,
            criterion=self._criterion,
            train=data,
            trusted_index=rows,
            trusted_given=before,
            horizon=replace(horizon(recipe, len(inputs)), steps=steps),
            pretrain=pretrain,
            trusted_batch_size=self.batch_size,
            seed=seed,
        )
        objective.prepare()
        training = Training(model, objective, data, recipe, seed, steps=steps)
        later: list[Tensor] = []
        self.history_: list[dict[str, float]] = []
        for epoch in training.epochs():
            loss, size = epoch.row["train_loss"], epoch.row.get("ess", 0.0)
            self.history_.append({"epoch": epoch.number, "loss": loss, "ess": size})
            if 2 * epoch.number > recipe.epochs:
                later.append(epoch.weights)
        self.module_ = model.eval()
        unused = 0.0 if objective.method.trains_on == "trusted" else 1.0
        mean = torch.stack(later).double().nanmean(0).nan_to_num(unused)
        self.weights_: NDArray[np.float64] = mean[:n].numpy()
        low = self.weights_ < SUSPECT * self.weights_.mean()
        order = np.argsort(self.weights_, kind="stable")
        self.suspects_: NDArray[np.int64] = order[low[order]]

    def _recipe(self, samples: int) -> tuple[Recipe, int]:
        """How to train on so many samples, and for how many steps.

        The mini-batches of a pass are nearly equal. A small training set counts several passes as
        an epoch.
        """
        per_pass = ceil(samples / self.batch_size)
        steps = max(LEAST_STEPS, PASSES * per_pass) if self.steps is None else self.steps
        passes = ceil(steps / (per_pass * EPOCHS))
        size = ceil(samples / per_pass)
        while samples % size == 1 and size > 2:  # batch norm cannot train on one sample
            size -= 1
        recipe = Recipe(
            epochs=ceil(steps / (ceil(samples / size) * passes)),
            passes=passes,
            batch_size=size,
            optimizer="adamw",
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            schedule="cosine",
            ramp=0,
            reduction="mean",
        )
        return recipe, steps

    def _weighting(self) -> str | Method:
        """The method: its name, or a copy of the one that is given."""
        return self.method if isinstance(self.method, str) else copy.deepcopy(self.method)

    def _forward(self, X: Any) -> Tensor:
        """The network's outputs for X, float32 on the CPU."""
        check_is_fitted(self, "module_")
        inputs = torch.as_tensor(self._encode(self._read(X, reset=False), fit=False))
        with torch.no_grad():
            outputs = (self.module_(part.to(self.device)) for part in inputs.split(PIECE))
            logits = [first_tensor(logits_of(part)) for part in outputs]
        return torch.cat([part.float().cpu() for part in logits])

    # What X may be

    def _read(self, X: Any, y: Any = "no_validation", *, reset: bool = True) -> Any:
        """X, and y if given, checked as scikit-learn does; a DataFrame stays one."""
        table = hasattr(X, "columns") and hasattr(X, "dtypes")
        if table and any(not is_number(kind) for kind in X.dtypes):
            validate_data(
                self, X, reset=reset, skip_check_array=True
            )  # names and number of columns
            if not len(X):
                raise UsageError("X: Found array with 0 sample(s); a minimum of 1 is required")
            if isinstance(y, str):
                return X
            y = column_or_1d(y, warn=True)
            assert_all_finite(y)
            check_consistent_length(X, y)
            return X, y
        return validate_data(
            self,
            X,
            y,
            reset=reset,
            dtype="numeric",
            allow_nd=self.module is not None,
            ensure_all_finite="allow-nan",
            **({} if isinstance(y, str) else self._reading_y),
        )

    def _read_trusted(self, X: Any, y: Any) -> Any:
        try:
            samples = self._read(X, reset=False)
        except ValueError as error:
            raise UsageError(f"X_trusted: {error}") from error
        y = np.asarray(y)
        if y.shape != (len(samples),):
            raise UsageError(f"y_trusted: {len(samples)} trusted samples, but labels {y.shape}")
        return samples, y

    def _encode(self, X: Any, *, fit: bool = True) -> NDArray[np.float32]:
        """Numbers standardised, missing ones at the mean, categories one-hot; images unchanged.

        Numbers that are far from all others count as `FARTHEST` standard deviations.
        """
        if X.ndim > 2:
            encoded = X
        else:
            if fit:
                self.encoder_ = encoder(X).fit(X)
            encoded = np.clip(self.encoder_.transform(X), -FARTHEST, FARTHEST)
        with np.errstate(over="ignore"):
            encoded = np.ascontiguousarray(encoded, dtype=np.float32)
        if not np.isfinite(encoded).all():
            raise UsageError("X: holds numbers that are missing or too large to compute with")
        return encoded

    def _check(self) -> None:
        check_fields(self, "batch_size", "learning_rate", positive=True)
        check_fields(self, "steps", least=1)
        check_fields(self, "trusted_share", positive=True, below=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags

    def _judge(
        self,
        inputs: NDArray[np.float32],
        given: NDArray[np.int64],
        right: NDArray[np.int64],
        seed: int,
    ) -> None:
        """Set the label model and suspects, by the verified rows `trusted_` (m,).

        Args:
            inputs: (n, …)
            given: (n,) the given labels, as class numbers.
            right: (m,) the right labels of the verified rows.
            seed: Decides folds.
        """
        vectors = inputs.reshape(len(inputs), -1).astype(np.float64)
        embedding = Embedding.fit(vectors, seed, columns=inputs.ndim == 2)
        model, posterior = judge_rows(
            vectors, embedding, given, self.trusted_, right, self._outputs(), seed
        )
        likely = posterior[np.arange(len(given)), given]
        suspected = model.suspects(posterior, given)
        suspected[self.trusted_] = False
        order = np.argsort(likely, kind="stable")
        self.label_model_ = model
        self.suspects_ = order[suspected[order]]

    # What the classifier and the regressor do differently

    _reading_y: ClassVar[dict[str, Any]] = {}
    """How y is checked, for `validate_data`."""
    _criterion: ClassVar[Any] = None
    """(outputs, targets) → losses; None for cross entropy."""

    def _outputs(self) -> int:
        """How many outputs the network has."""
        raise NotImplementedError

    def _encode_targets(self, y: NDArray[Any], *, fit: bool = True) -> NDArray[Any]:
        """What the network learns for y, (n,)."""
        raise NotImplementedError

    def _hold_out(self, targets: NDArray[Any], seed: int) -> NDArray[np.int64]:
        """Rows to take for trusted, where none are given."""
        raise NotImplementedError


def _make_module(module: Module, shape: tuple[int, ...], outputs: int) -> nn.Module:
    if module is None or isinstance(module, str):
        return make_model(module or "mlp", shape=shape, num_classes=outputs)
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    made: Any = module(shape=shape, num_classes=outputs)
    if not isinstance(made, nn.Module):
        raise UsageError(f"module: it returned a {type(made).__name__}, expected an nn.Module")
    return made
