"""The other estimators by name: a function and a class each (docs/estimators.md says when which).

All estimate the same thing as `kmm`, the ratio of the trusted to the training density at the
training values, and give the same `Match`. `kmm(…, solver="el")` is the same as `el(…)`, which
besides takes what that estimator alone understands.
"""

from dataclasses import dataclass

import numpy as np

from diw.matching.backend import FloatArray, Values, is_tensor
from diw.matching.gram import gram_of
from diw.matching.kmm import KMM, kmm
from diw.matching.match import Match, certify, settled
from diw.matching.options import Features, OnFailure, Options, Solver
from diw.matching.penalised import Masses, penalised
from diw.matching.pgd import projected_gradient
from diw.matching.problem import make_problem


def _up_to_a_penalty(solver: Solver, says: str):
    """The function of one of the penalties; their arguments are the same."""

    def match(
        z_train: Values,
        z_trusted: Values,
        *,
        penalty: float | None = None,
        gamma: float | str | None = None,
        bound: float = 50.0,
        train_mass: Values = None,
        trusted_mass: Values = None,
        rank: int | None = None,
        tol: float = 1e-8,
        on_failure: OnFailure = "raise",
    ) -> Match:
        options = Options(
            solver=solver, penalty=penalty, gamma=gamma, bound=bound, rank=rank, tol=tol,
            on_failure=on_failure,
        )  # fmt: skip
        return _with_masses(z_train, z_trusted, options, train_mass, trusted_mass)

    match.__name__ = match.__qualname__ = solver
    match.__doc__ = f"""{says}

    Args:
        z_train: (n,) or (n, d) training values, as in `kmm`.
        z_trusted: (m,) or (m, d) trusted values.
        penalty: ν; None is the discrepancy principle, the largest ν with
            MMD² ≤ (1 − ‖μ̂_trusted‖²)/m.
        gamma: Width of the kernel, as in `kmm`.
        bound: B, the largest weight.
        train_mass: (n,) how many samples each training value stands for; None is one.
        trusted_mass: (m,) the same of the trusted values.
        rank: The largest rank of the kernel's factor; None is 256 of more than
            512 values, training and trusted together.
        tol: The largest relative residual that counts as solved.
        on_failure: "raise" or "warn", where `tol` is not reached.
    """
    return match


el = _up_to_a_penalty(
    "el",
    "Weights by empirical likelihood: minimise ½MMD² + ν·mean(w − 1 − log w) over 0 < w ≤ B.",
)
entropy = _up_to_a_penalty(
    "entropy",
    "Weights by entropy: minimise ½MMD² + ν·mean(w log w − w + 1) over 0 ≤ w ≤ B.",
)
chi2 = _up_to_a_penalty(
    "chi2",
    """Weights by least squares: minimise ½MMD² + (ν/2)·mean((w − 1)²) over 0 ≤ w ≤ B.

    Kernel mean matching with a ridge that draws weights to one, as strong as the trusted samples
    allow.""",
)


def ulsif(
    z_train: Values,
    z_trusted: Values,
    *,
    penalty: float | None = None,
    gamma: float | str | None = None,
    bound: float = 50.0,
) -> Match:
    """Weights by unconstrained least-squares importance fitting (Kanamori et al. 2009).

    A kernel model with up to 100 trusted values as centres, in closed form. `gamma` and
    `penalty`, its λ, are chosen by the error with one pair left out where they are None.
    """
    return kmm(z_train, z_trusted, solver="ulsif", penalty=penalty, gamma=gamma, bound=bound)


def kliep(
    z_train: Values,
    z_trusted: Values,
    *,
    gamma: float | str | None = None,
    bound: float = 50.0,
    on_failure: OnFailure = "raise",
) -> Match:
    """Weights by the Kullback–Leibler importance estimation procedure (Sugiyama et al. 2008).

    The kernel model of `ulsif`, fitted by likelihood; `gamma` is chosen by the likelihood
    of folds left out where it is None.
    """
    return kmm(z_train, z_trusted, solver="kliep", gamma=gamma, bound=bound, on_failure=on_failure)


def logistic(
    z_train: Values,
    z_trusted: Values,
    *,
    penalty: float | None = None,
    features: Features = "any",
    gamma: float | str | None = None,
    bound: float = 50.0,
    tol: float = 1e-8,
    on_failure: OnFailure = "raise",
) -> Match:
    """Weights by logistic regression between trusted and training values (Bickel et al. 2009).

    The features are the columns, their squares and products, or Gaussian kernels, whichever are
    likeliest when left out, simple ones first; `features="linear"` asks for the columns alone,
    `gamma` for kernels of that width. `penalty` is λ, chosen in the same way where it is None.
    The match has `gamma` 0 where no kernels were taken, and the number of features as its `rank`.
    """
    return kmm(
        z_train, z_trusted, solver="logistic", penalty=penalty, features=features, gamma=gamma,
        bound=bound, tol=tol, on_failure=on_failure,
    )  # fmt: skip


def pgd(
    z_train: Values,
    z_trusted: Values,
    *,
    start: Values = None,
    steps: int = 1,
    rate: float = 1.0,
    gamma: float | str | None = None,
    bound: float = 50.0,
    slack: float | None = None,
    ridge: float = 1e-5,
) -> Match:
    """Weights by a few projected gradient steps on the matching problem, as ADIW takes them.

    Args:
        z_train: (n,) or (n, d) training values, as in `kmm`.
        z_trusted: (m,) or (m, d) trusted values.
        start: (n,) the weights of the last visit; None is one each.
        steps: How many steps.
        rate: The learning rate; up to 2 the objective never grows.
        gamma: Width of the kernel; None is "quantile:0.5".
        bound: B, the largest weight.
        slack: ε, how far the mean weight may be from one; None is (√n−1)/√n.
        ridge: ω, added to the kernel's diagonal.
    """
    options = Options(
        solver="pgd", steps=steps, rate=rate, gamma=gamma, bound=bound, slack=slack, ridge=ridge
    )
    problem = make_problem(z_train, z_trusted, options)
    gram = gram_of(problem, None)
    begin = None if start is None else problem.xp.array(_counts("start", start, problem.n))
    solution = projected_gradient(problem, gram, options, begin)
    return certify(problem, gram, solution, z_train, options)[0]


def isotonic(z_train: Values, z_trusted: Values, *, bound: float = 50.0) -> Match:
    """Weights by the monotone ratio of largest likelihood, for one number per sample.

    The ratio rises or falls with the value, whichever is likelier. There is no kernel and nothing
    to choose.
    """
    return kmm(z_train, z_trusted, solver="isotonic", bound=bound)


def _with_masses(
    z_train: Values, z_trusted: Values, options: Options, train_mass: Values, trusted_mass: Values
) -> Match:
    problem = make_problem(z_train, z_trusted, options)
    n, m = problem.n, len(problem.z) - problem.n
    masses = Masses(_counts("train_mass", train_mass, n), _counts("trusted_mass", trusted_mass, m))
    for name, mass in (("train_mass", masses.train), ("trusted_mass", masses.trusted)):
        if not mass.sum() > 0:
            raise ValueError(f"{name}: all masses are zero")
    match, solved = penalised(problem, options, z_train, masses)
    return settled(match, solved, options, stacklevel=3)


def _counts(name: str, values: Values, size: int) -> FloatArray:
    """(size,) finite numbers that are not negative, ones by default."""
    if values is None:
        return np.ones(size)
    try:
        values = values.detach().cpu().double().numpy() if is_tensor(values) else values
        counts = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name}: is not an array of numbers") from None
    if counts.shape != (size,):
        raise ValueError(f"{name}: needs one number per value, ({size},), not {counts.shape}")
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError(f"{name}: holds negative, infinite or NaN numbers")
    return counts


class _Named(KMM):
    """`KMM` with another solver as its default."""

    def __init_subclass__(cls, *, solver: Solver) -> None:
        cls.__annotations__ = {"solver": Solver}
        cls.solver = solver
        dataclass(kw_only=True, repr=False, eq=False)(cls)


class EL(_Named, solver="el"):
    """`el` with the conventions of `KMM`."""


class Entropy(_Named, solver="entropy"):
    """`entropy` with the conventions of `KMM`."""


class Chi2(_Named, solver="chi2"):
    """`chi2` with the conventions of `KMM`."""


class ULSIF(_Named, solver="ulsif"):
    """`ulsif` with the conventions of `KMM`."""


class KLIEP(_Named, solver="kliep"):
    """`kliep` with the conventions of `KMM`."""


class Logistic(_Named, solver="logistic"):
    """`logistic` with the conventions of `KMM`."""


class PGD(_Named, solver="pgd"):
    """`pgd` with the conventions of `KMM`."""


class Isotonic(_Named, solver="isotonic"):
    """`isotonic` with the conventions of `KMM`."""
