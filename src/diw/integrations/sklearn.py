"""scikit-learn: a classifier and a regressor that learn their sample weights.

They have no `sample_weight` in `fit`: the weights are what is learned.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from diw.errors import UsageError
from diw.integrations import missing
from diw.integrations.network import NetworkLearner
from diw.methods import Method, make
from diw.methods.remember import Remember
from diw.seeding import derive

try:
    from sklearn.base import ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None


class DIWClassifier(ClassifierMixin, NetworkLearner):
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
            With verified rows: those whose label is probably wrong, the worst first.
        label_model_: With verified rows: the fitted `diw.labels.LabelModel`, which says how many
            labels are wrong.
        history_: Loss and effective sample size per epoch.
        trusted_: Rows of the trusted samples in X followed by X_trusted.
        module_: The trained network.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        X_trusted: Any = None,
        y_trusted: Any = None,
        *,
        trusted: Any = None,
        verified: Any = None,
    ) -> Self:
        """Train a network on X and y, weighted so that they look like the trusted samples.

        Args:
            X: (n, d) an array or a DataFrame, numbers and categories; or (n, …) images for a
                `module` of one's own.
            y: (n,) labels.
            X_trusted: (m, d) trusted samples, with the columns of X. They are trained on too.
            y_trusted: (m,) their labels.
            trusted: Instead of these two: which rows of X are trusted, as a mask (n,) of truth
                values or of zeros and ones, or as row numbers (m,). In a cross-validation use a
                mask, which is split along with X.
            verified: Instead of these: (n,) the right labels of the rows that somebody checked,
                None or NaN for the others; or a mapping from row number to right label. These rows
                are trusted, with their right labels, and what they were given tells which labels
                of the others are wrong.
        """
        return self._train(X, y, X_trusted, y_trusted, trusted, verified)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability of each class, (n, k)."""
        return self._forward(X).softmax(1).numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, (n,)."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def _outputs(self) -> int:
        return len(self.classes_)

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


def _squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.squeeze(1) - targets) ** 2


class DIWRegressor(RegressorMixin, NetworkLearner):
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

    _reading_y: ClassVar[dict[str, Any]] = {"y_numeric": True}
    _criterion: ClassVar[Any] = staticmethod(_squared_error)

    def _weighting(self) -> str | Method:
        """As asked; where that needs classes, what it would match instead, without a warning."""
        method = super()._weighting()
        found = make(method) if isinstance(method, str) else method
        return "diw" if isinstance(found, Remember) else method

    def predict(self, X: Any) -> NDArray[np.float32]:
        """The predicted number, (n,)."""
        return (self._forward(X).squeeze(1) * self._scale + self._centre).numpy()

    def _outputs(self) -> int:
        return 1

    def _encode_targets(self, y: NDArray[Any], *, fit: bool = True) -> NDArray[np.float32]:
        y = np.asarray(y, dtype=np.float64)
        if fit:
            self._centre, self._scale = float(y.mean()), float(y.std()) or 1.0
        return ((y - self._centre) / self._scale).astype(np.float32)

    def _hold_out(self, targets: NDArray[Any], seed: int) -> NDArray[np.int64]:
        generator = np.random.default_rng(derive(seed, "trusted"))
        size = max(1, round(self.trusted_share * len(targets)))
        return np.sort(generator.choice(len(targets), size, replace=False))
