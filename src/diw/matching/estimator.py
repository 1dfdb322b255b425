"""`KMM`: kernel mean matching as a scikit-learn-like estimator."""

import inspect
from typing import Any, Self

import numpy as np

from diw.matching.kmm import kmm
from diw.matching.match import Match
from diw.matching.options import BOUND, OnFailure, Solver


class KMM:
    """Weights for training samples so that they look like the trusted ones.

    The parameters are those of `diw.kmm`. The class keeps scikit-learn's
    conventions (`get_params`, `set_params`, `clone`, trailing underscores)
    without importing it.

    Attributes:
        weights_: (n,) the weights of the training samples.
        match_: The whole `Match`, with status, residuals and error bound.
        gamma_: The kernel's γ that was used.
        n_features_in_: Columns of `X_train`.

    Examples:
        >>> import numpy as np
        >>> X_train, X_trusted = np.arange(8.0).reshape(4, 2), np.ones((3, 2))
        >>> KMM(bound=10).fit(X_train, X_trusted).weights_.shape
        (4,)
    """

    def __init__(
        self,
        *,
        gamma: float | str | None = None,
        bound: float = BOUND,
        slack: float | None = None,
        ridge: float = 1e-5,
        tol: float = 1e-8,
        rank: int | None = None,
        max_iterations: int = 200,
        on_failure: OnFailure = "raise",
        solver: Solver = "diw",
    ):
        self.gamma = gamma
        self.bound = bound
        self.slack = slack
        self.ridge = ridge
        self.tol = tol
        self.rank = rank
        self.max_iterations = max_iterations
        self.on_failure = on_failure
        self.solver = solver

    def fit(self, X_train: Any, X_trusted: Any) -> Self:
        """Match the training samples to the trusted ones.

        Args:
            X_train: (n,) or (n, d) training samples.
            X_trusted: (m,) or (m, d) trusted samples.
        """
        self.match_: Match = kmm(X_train, X_trusted, **self.get_params())
        self.weights_: Any = self.match_.weights
        self.gamma_: float = self.match_.gamma
        shape = np.shape(X_train)
        self.n_features_in_: int = shape[1] if len(shape) > 1 else 1
        return self

    def fit_weights(self, X_train: Any, X_trusted: Any) -> Any:
        """`fit`, then the weights: what to hand to another estimator as `sample_weight`."""
        return self.fit(X_train, X_trusted).weights_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name; `deep` is for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in _names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name.

        Raises:
            ValueError: There is no such parameter.
        """
        for name, value in params.items():
            if name not in _names():
                raise ValueError(f"{name}: is not a parameter of KMM; choose from {_names()}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(KMM).parameters
        changed = {k: v for k, v in self.get_params().items() if v != defaults[k].default}
        return f"KMM({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


def _names() -> list[str]:
    return list(inspect.signature(KMM).parameters)
