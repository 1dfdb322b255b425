"""Kernel mean matching: `kmm` for one problem, `kmm_batch` for many, `KMM` as an estimator."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from diw.matching.match import Match
from diw.matching.options import Options, with_keywords
from diw.matching.pipeline import match_all


@with_keywords(Options)
def kmm(z_train: Any, z_trusted: Any, options: Options) -> Match:
    """Weights under which the kernel mean of the training values matches that of the trusted ones.

    Fang et al. 2020, Eq. (10), after Huang et al. 2007. Minimises
    ½wᵀ(K+ωI)w − kᵀw with K_ij = k(z_i, z_j) and
    k_i = (n/m) Σ_j k(z_i, z_j^trusted), over 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε.

    Args:
        z_train: (n,) or (n, d) training values, a NumPy array or a tensor.
        z_trusted: (m,) or (m, d) trusted values.
        options: As keywords: the fields of `diw.matching.Options`, explained there and in
            docs/matching.md.

    Returns:
        A `Match`; its weights have the kind, device and precision of `z_train`
        (half precisions become float32, whole numbers float64).

    Raises:
        ValueError: An argument cannot work; the message names it.
        MatchingError: The problem was not solved to `tol`; the message has the residuals.
    """
    return match_all([(z_train, z_trusted)], options)[0]


@with_keywords(Options)
def kmm_batch(z_train: Sequence[Any], z_trusted: Sequence[Any], options: Options) -> list[Match]:
    """Match each training set to the trusted set at the same place; sizes may differ.

    Fang et al. 2020, Sec. 2: with hidden-layer outputs each class is matched alone. The
    options are those of `kmm` and hold for every problem; `gamma` and `slack`
    given as rules are evaluated for each problem by itself. Small problems are solved side
    by side, which takes a fraction of the time of one after the other.

    Args:
        z_train: Training values, one (n_c,) or (n_c, d) array or tensor per problem.
        z_trusted: As many arrays of trusted values.
        options: As keywords, see `kmm`.

    Raises:
        ValueError: The two sequences differ in length, or an argument of `kmm` cannot work.
    """
    if len(z_train) != len(z_trusted):
        raise ValueError(
            f"z_trusted: {len(z_trusted)} sets do not match the {len(z_train)} of z_train"
        )
    return match_all(list(zip(z_train, z_trusted, strict=True)), options)


@dataclass(kw_only=True, repr=False, eq=False)
class KMM(Options):
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

    def __post_init__(self) -> None:
        """Leave the checks to `fit`, as scikit-learn's conventions ask."""

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
        """`fit`, then return the weights, for use as another estimator's `sample_weight`."""
        return self.fit(X_train, X_trusted).weights_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is there for scikit-learn and changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name.

        Raises:
            ValueError: There is no such parameter.
        """
        known = list(self.get_params())
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{name}: is not a parameter of KMM; choose from {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        values = ((f, getattr(self, f.name)) for f in fields(self))
        changed = [f"{field.name}={value!r}" for field, value in values if value != field.default]
        return f"KMM({', '.join(changed)})"
