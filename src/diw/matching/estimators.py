"""What all estimators of the ratio share, and `KMM`, the first of them.

Each estimates the ratio of the trusted to the training density: `fit(train, trusted)` gives
`weights_` at the training values and a `status_`, and `predict(rows)` the weights of new rows.
docs/estimators.md says when which is right.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np

from diw.alerts import warn
from diw.errors import UsageError
from diw.matching.gram import (
    BLOCK,
    DENSE_ROWS,
    Basis,
    Factor,
    FloatArray,
    clip,
    gaussian,
    squared_distances,
)
from diw.matching.kmm import Options, as_values, blas_threads, solve
from diw.matching.match import Values, into_band, like

FAINT, FEW_COUNT = 0.8, 0.5  # mean weight (or one over it) and effective share: reasons to look
NEIGHBOURS = 1000  # values of either kind that are, at most
MANY = 0.1  # the share without neighbours that is worth a warning


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """Fields of a dataclass as parameters, by scikit-learn's conventions without importing it."""

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
                kind = type(self).__name__
                raise ValueError(f"{name}: is not a parameter of {kind}; choose from {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        values = ((f, getattr(self, f.name)) for f in fields(self))
        changed = [f"{field.name}={value!r}" for field, value in values if value != field.default]
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Parameters, ABC):
    """Weights for training samples so that they look like the trusted ones.

    The classes keep scikit-learn's conventions (`get_params`, `set_params`, `clone`, trailing
    underscores) without importing it; parameters are checked by `fit`.

    Attributes:
        weights_: (n,) the weights of the training samples, of the kind of `train`.
        status_: "optimal", or what else there is to know.
        n_features_in_: Columns of `train`.
        feature_names_in_: Their names, where `train` is a DataFrame with names.
    """

    def fit(self, train: Values, trusted: Values) -> Self:
        """Estimate the weights of the training samples.

        Args:
            train: (n,) or (n, d) training samples; a DataFrame's columns go by name.
            trusted: (m,) or (m, d) trusted samples.
        """
        self._check()
        names = _names(train)
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        shape = np.shape(train)
        self.n_features_in_: int = shape[1] if len(shape) > 1 else 1
        with blas_threads(train, trusted):
            weights, status = self._fit(train, self._in_order("trusted", trusted))
        self.weights_: Values = like(train, weights, self._most)
        self.status_: str = status
        mean, square = float(weights.mean()), float((weights * weights).mean())
        effective = mean * mean / max(square, 1e-300)
        plain = status in ("optimal", "approximate")
        if not (plain and FAINT <= mean <= 1 / FAINT and effective >= FEW_COUNT):
            self._look_for_neighbours(train, trusted, effective)
        return self

    def fit_weights(self, train: Values, trusted: Values) -> Values:
        """`fit`, then return the weights, for use as another estimator's `sample_weight`."""
        return self.fit(train, trusted).weights_

    def predict(self, rows: Values) -> Values:
        """The weights of new rows, (k,) of (k,) or (k, d), by the ratio that `fit` found."""
        if not self.__sklearn_is_fitted__():
            raise UsageError(
                f"{type(self).__name__}: is not fitted; call fit(train, trusted) first"
            )
        z = as_values("rows", self._in_order("rows", rows))
        z = z[:, None] if z.ndim == 1 else z
        if z.shape[1] != self.n_features_in_:
            raise UsageError(f"rows: {z.shape[1]} columns, but fit had {self.n_features_in_}")
        if not np.isfinite(z).all():
            raise UsageError("rows: holds NaN or infinite values")
        with blas_threads(z):
            return like(rows, clip(self._predict(z), self._most), self._most)

    def _look_for_neighbours(self, train: Values, trusted: Values, effective: float) -> None:
        """Say, and warn, that trusted values lie where nothing can be weighed, if many do."""
        ours, theirs = as_values("train", train), as_values("trusted", self._in_order("", trusted))
        share = uncovered(ours, theirs)
        if share > MANY:
            said = f"{share:.0%} of the trusted values lie where there are no training values"
            self.status_ += f"; {said}"
            warn(
                f"{type(self).__name__}: {said}, so that no weights stand for them; "
                f"the effective sample size is {effective:.1%}"
            )

    @property
    def _most(self) -> float:
        """The largest weight."""
        return float(getattr(self, "bound", math.inf))

    def _check(self) -> None:
        """Refuse parameters that cannot work, by name."""

    @abstractmethod
    def _fit(self, train: Values, trusted: Values) -> tuple[FloatArray, str]:
        """The weights (n,), at most B, and the status; keeps what `_predict` needs."""

    @abstractmethod
    def _predict(self, z: FloatArray) -> FloatArray:
        """The ratio at finite values (k, d)."""

    def _in_order(self, argument: str, rows: Any) -> Any:
        """Rows with their columns in the order of the training columns, where both have names."""
        names, theirs = list(vars(self).get("feature_names_in_", ())), _names(rows)
        if not names or theirs is None or names == theirs:
            return rows
        if sorted(names) != sorted(theirs):
            lacking = [name for name in names if name not in theirs]
            word, which = ("lacks", lacking) if lacking else ("also has", set(theirs) - set(names))
            raise UsageError(f"{argument}: {word} the column {next(iter(which))!r}")
        return rows[names]

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks: fitted with two tables of numbers, no labels, finite."""
        from sklearn.utils import (  # pyright: ignore[reportMissingTypeStubs]
            InputTags,
            Tags,
            TargetTags,
        )

        return Tags(None, TargetTags(required=False), input_tags=InputTags(one_d_array=True))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")


def uncovered(train: FloatArray, trusted: FloatArray) -> float:
    """The share of trusted values far from all training values, of up to 1,000 of either.

    Far is three times as far as all but a hundredth of the training values are from each other.
    """
    ours, theirs = (_some(part.reshape(len(part), -1)) for part in (train, trusted))
    z, n = np.concatenate([ours, theirs]), len(ours)
    z -= np.median(ours, axis=0)
    z /= max(float(np.abs(z).max()), 1e-300)
    squares = squared_distances(z[:n], z, 1e-6)
    np.fill_diagonal(squares, math.inf if n > 1 else 0.0)
    limit = 9.0 * float(np.quantile(squares[:, :n].min(1), 0.99))
    return float((squares[:, n:].min(0) > limit).mean())


def _some(z: FloatArray) -> FloatArray:
    """Up to `NEIGHBOURS` of the values, evenly through them."""
    return z[np.linspace(0, len(z) - 1, min(len(z), NEIGHBOURS)).astype(np.int64)]


def _names(X: Any) -> list[str] | None:
    """The columns' names of a DataFrame, if all are text."""
    names: list[Any] = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


@final
@dataclass(kw_only=True, eq=False, repr=False)
class KMM(Estimator, Options):
    """Kernel mean matching: `diw.kmm`, whose options are the parameters.

    Attributes:
        match_: The whole `Match`, with status, residuals and error bound.
        gamma_: The kernel's γ that was used.

    Examples:
        >>> import numpy as np
        >>> X_train, X_trusted = np.arange(8.0).reshape(4, 2), np.ones((3, 2))
        >>> KMM(bound=10).fit(X_train, X_trusted).weights_.shape
        (4,)
    """

    def __post_init__(self) -> None:
        """Leave the checks to `fit`, as scikit-learn's conventions ask."""

    def _fit(self, train: Values, trusted: Values) -> tuple[FloatArray, str]:
        [solved] = solve([(train, trusted)], Options(**self.get_params()))
        problem, gram = solved.problem, solved.gram
        weights = into_band(problem, solved.solution.weights)
        self.match_, self.gamma_ = solved.match, solved.match.gamma
        self._problem, self._solution = problem, solved.solution
        self._factor: tuple[Basis, FloatArray, bool] | None = None
        if isinstance(gram, Factor) and (gram.capped or problem.n > DENSE_ROWS):
            basis = Basis.of(problem.columns[list(gram.pivots)], problem.gamma)
            self._factor = basis, gram.b - gram.V @ weights, gram.capped
        return weights, solved.match.status

    def _predict(self, z: FloatArray) -> FloatArray:
        """The weights that fulfil the conditions of optimality beside those of the training values.

        On the kernel matrix w(z) = (k(z) − Σ_j k(z, z_j) w_j − λ)/ω, where k(z) is the trusted
        values' part; on a factor the same through its r dual numbers. Cut at 0 and B.
        """
        if self.solver != "exact":
            raise UsageError(f"predict: needs solver='exact'; {self.solver!r} stops before")
        problem, found = self._problem, self._solution
        z, known, n, ridge = problem.placed(z), problem.columns, problem.n, problem.ridge
        if self._factor is not None:
            basis, dual, capped = self._factor
            V, left = basis.columns(z)
            u = (dual @ V - found.multiplier) / ridge
            return u * ridge / (ridge + left) if capped else u
        share = np.append(-found.weights, np.full(len(known) - n, n / (len(known) - n)))
        pieces = np.array_split(z, 1 + len(z) * len(known) // BLOCK)
        pull = np.concatenate([gaussian(piece, known, problem.gamma) @ share for piece in pieces])
        return (pull - found.multiplier) / ridge
