"""scikit-learn: a classifier and a regressor that learn their sample weights.

They have no `sample_weight` in `fit`: the weights are what is learned.
"""

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from diw.config import DEFAULT_METHOD
from diw.errors import DIWWarning, UsageError
from diw.integrations import missing
from diw.integrations.vectors import encoder, is_number
from diw.methods import Method, make
from diw.methods.remember import Remember
from diw.models import make_model
from diw.objective import Objective
from diw.runs import Recipe
from diw.seeding import derive
from diw.step.batch import first_tensor
from diw.step.criteria import logits_of
from diw.step.rows import TensorRows
from diw.training.loop import Training, horizon

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import (
        assert_all_finite,
        check_consistent_length,
        check_random_state,
        column_or_1d,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None

SUSPECT = 0.5
"""Samples whose weight is below this share of the mean are suspects."""
LEAST_STEPS = 300
"""A network needs this many steps, however few samples there are."""
PASSES = 30
"""Passes over a training set that is large enough for them."""
EPOCHS = 20
"""Epochs of a small training set, at most: several passes count as one."""
PIECE = 4096
"""Rows per forward of a prediction."""
FARTHEST = 1e6
"""Standard deviations from the mean beyond which a number is taken to be this far: no output of a
network overflows."""

Module = nn.Module | str | Callable[..., nn.Module] | None


class _Learner(BaseEstimator):
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
        self._check()
        samples, y = self._read(X, y)
        n = len(y)
        inputs, targets = self._encode(samples), self._encode_targets(y)
        chosen = None
        if X_trusted is not None or y_trusted is not None:
            if X_trusted is None or y_trusted is None or trusted is not None:
                raise UsageError("X_trusted: give X_trusted and y_trusted together, or trusted=")
            X_more, y_more = self._read_trusted(X_trusted, y_trusted)
            inputs = np.concatenate([inputs, self._encode(X_more, fit=False)])
            targets = np.concatenate([targets, self._encode_targets(y_more, fit=False)])
            chosen = np.arange(n, len(inputs))
        elif trusted is not None:
            chosen = _row_numbers(trusted, n)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if chosen is None:
            chosen = self._hold_out(targets, seed)
            warnings.warn(
                f"X_trusted: not given, so {len(chosen)} of the {n} samples, drawn at random, "
                "serve as trusted; labels that are wrong among them are followed",
                DIWWarning,
                stacklevel=2,
            )
        self.trusted_: NDArray[np.int64] = chosen
        with torch.random.fork_rng(devices=[]):
            self._fit(torch.as_tensor(inputs), torch.as_tensor(targets), n, seed)
        return self

    def _fit(self, inputs: Tensor, targets: Tensor, n: int, seed: int) -> None:
        """Train on tensors; the first n rows are those of X."""
        torch.manual_seed(derive(seed, "init"))
        model = _make_module(self.module, tuple(inputs.shape[1:]), self._outputs()).to(self.device)
        rows = torch.as_tensor(self.trusted_)
        recipe, steps = self._recipe(len(inputs))
        objective = Objective(
            model,
            self._weighting(),
            (inputs[rows], targets[rows]),
            criterion=self._criterion(),
            train=(inputs, targets),
            trusted_index=rows,
            horizon=replace(horizon(recipe, len(inputs)), steps=steps),
            trusted_batch_size=self.batch_size,
            seed=seed,
        )
        training = Training(
            model, objective, TensorRows(inputs, targets), recipe, seed, steps=steps
        )
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
            **({} if isinstance(y, str) else self._y()),
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
        for name in ("batch_size", "learning_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(
                    f"{name}: must be positive and finite, and is {getattr(self, name)}"
                )
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"steps: must be at least 1, and is {self.steps}")
        if not 0 < self.trusted_share < 1:
            raise UsageError(f"trusted_share: must be in (0, 1), and is {self.trusted_share}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags

    # What the classifier and the regressor do differently

    def _y(self) -> dict[str, Any]:
        """How y is checked."""
        raise NotImplementedError

    def _outputs(self) -> int:
        """How many outputs the network has."""
        raise NotImplementedError

    def _criterion(self) -> Any:
        """(outputs, targets) → losses; None for cross entropy."""
        raise NotImplementedError

    def _encode_targets(self, y: NDArray[Any], *, fit: bool = True) -> NDArray[Any]:
        """What the network learns for y, (n,)."""
        raise NotImplementedError

    def _hold_out(self, targets: NDArray[Any], seed: int) -> NDArray[np.int64]:
        """Rows to take for trusted, where none are given."""
        raise NotImplementedError


class DIWClassifier(ClassifierMixin, _Learner):
    """A network classifier that learns how much each training sample should count.

    By the default method of diw, `remember`, by dynamic importance weighting (`"diw"`, Fang et al.
    2020), or another one: the weights make the training samples look like a few trusted ones.
    Numbers are standardised, categories one-hot, missing values at the mean.

    Args:
        method: A method's name (`diw methods`), or an instance with its fields set. Of one that is
            given by name, a warm-up in steps takes a tenth of the steps at most.
        module: The network: a factory that takes `shape` and `num_classes`, an `nn.Module`, which
            is copied, or a name; None for a perceptron with two hidden layers of 128.
        steps: Steps of AdamW; None for 30 passes over X, but 300 steps at least.
        batch_size: Samples per step.
        learning_rate: At the start; it falls to zero.
        weight_decay: Of AdamW.
        trusted_share: The share of X that is taken for trusted where no trusted samples are given.
        device: Where the network is trained, such as `"cuda"`.
        random_state: Decides everything random.

    Attributes:
        classes_: The labels, in the order of `predict_proba`'s columns.
        weights_: (n,) the mean weight of each row of X in the second half of the training.
        suspects_: Rows of X with less than half the mean weight, the lowest first: look at these.
        history_: Loss and effective sample size per epoch.
        trusted_: Rows of the trusted samples in X followed by X_trusted.
        module_: The trained network.
    """

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability of each class, (n, k)."""
        return self._forward(X).softmax(1).numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, (n,)."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def _y(self) -> dict[str, Any]:
        return {}

    def _outputs(self) -> int:
        return len(self.classes_)

    def _criterion(self) -> Any:
        return None

    def _encode_targets(self, y: NDArray[Any], *, fit: bool = True) -> NDArray[np.int64]:
        if fit:
            check_classification_targets(y)
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise UsageError("y: holds one class only; a classifier needs at least two")
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise UsageError(f"y_trusted: {str(y[unknown][0])!r} is not a class of y")
        return np.searchsorted(self.classes_, y)

    def _hold_out(self, targets: NDArray[Any], seed: int) -> NDArray[np.int64]:
        """A share of each class, at least one sample."""
        generator = np.random.default_rng(derive(seed, "trusted"))
        parts = [np.flatnonzero(targets == label) for label in np.unique(targets)]
        sizes = [max(1, round(self.trusted_share * len(part))) for part in parts]
        drawn = [generator.choice(p, s, replace=False) for p, s in zip(parts, sizes, strict=True)]
        return np.sort(np.concatenate(drawn))


class DIWRegressor(RegressorMixin, _Learner):
    """A network regressor that learns how much each training sample should count.

    As `DIWClassifier`, with squared errors of standardised targets, which are also what is
    matched: `remember`, the default of diw, needs classes, and without them it matches losses as
    `diw` does. Methods that match each class alone (-F) do not apply.

    Args:
        method: As for `DIWClassifier`, and so are the others.
        module: Called with `num_classes=1`.
        steps: Steps of AdamW.
        batch_size: Samples per step.
        learning_rate: At the start; it falls to zero.
        weight_decay: Of AdamW.
        trusted_share: The share of X that is taken for trusted where no trusted samples are given.
        device: Where the network is trained.
        random_state: Decides everything random.

    Attributes:
        weights_: (n,) the mean weight of each row of X in the second half of the training.
        suspects_: Rows of X with less than half the mean weight, the lowest first.
        history_: Loss and effective sample size per epoch.
        trusted_: Rows of the trusted samples in X followed by X_trusted.
        module_: The trained network.
    """

    def _weighting(self) -> str | Method:
        """As asked; where that needs classes, what it would match instead, without a warning."""
        method = super()._weighting()
        found = make(method) if isinstance(method, str) else method
        return "diw" if isinstance(found, Remember) else method

    def predict(self, X: Any) -> NDArray[np.float32]:
        """The predicted number, (n,)."""
        return (self._forward(X).squeeze(1) * self._scale + self._centre).numpy()

    def _y(self) -> dict[str, Any]:
        return {"y_numeric": True}

    def _outputs(self) -> int:
        return 1

    def _criterion(self) -> Any:
        return _squared_error

    def _encode_targets(self, y: NDArray[Any], *, fit: bool = True) -> NDArray[np.float32]:
        y = np.asarray(y, dtype=np.float64)
        if fit:
            self._centre, self._scale = float(y.mean()), float(y.std()) or 1.0
        return ((y - self._centre) / self._scale).astype(np.float32)

    def _hold_out(self, targets: NDArray[Any], seed: int) -> NDArray[np.int64]:
        generator = np.random.default_rng(derive(seed, "trusted"))
        size = max(1, round(self.trusted_share * len(targets)))
        return np.sort(generator.choice(len(targets), size, replace=False))


def _row_numbers(trusted: Any, n: int) -> NDArray[np.int64]:
    """Row numbers from row numbers or a mask: n truth values, or n zeros and ones."""
    values = np.asarray(trusted)
    if values.shape == (n,) and values.dtype.kind in "biu" and np.isin(values, (0, 1)).all():
        values = np.flatnonzero(values)
    if values.ndim != 1 or values.dtype.kind not in "iu" or not len(values):
        raise UsageError(f"trusted: give a mask ({n},) or row numbers, at least one row")
    if values.min() < -n or values.max() >= n:
        raise UsageError(f"trusted: row numbers must lie in 0..{n - 1}")
    return values.astype(np.int64) % n


def _make_module(module: Module, shape: tuple[int, ...], outputs: int) -> nn.Module:
    if module is None or isinstance(module, str):
        return make_model(module or "mlp", shape=shape, num_classes=outputs)
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    made: Any = module(shape=shape, num_classes=outputs)
    if not isinstance(made, nn.Module):
        raise UsageError(f"module: it returned a {type(made).__name__}, expected an nn.Module")
    return made


def _squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.squeeze(1) - targets) ** 2
