"""The ratio by classification: tell trusted from training values, and take the odds.

Where p(z) is the probability that a value z among all n + m is a trusted one, the ratio of the
densities is r(z) = (n/m) · p(z)/(1 − p(z)). Its logarithm is modelled as b + aᵀφ(z) by logistic
regression with the penalty (λ/2)‖a‖² (Qin 1998; Bickel, Brückner & Scheffer 2009; see
regression.py). Three kinds of φ, from simple to rich:

    linear      the columns, standardised: exact where a normal distribution moves
    quadratic   besides their squares and products: exact between any two normal distributions
    kernels     Gaussian kernels at `CENTRES` values, whitened, so that ‖a‖ is the norm of the
                function in the kernel's space: bounded, for heavy tails and odd shapes

λ has the largest likelihood of values left out. So has the family, but a simpler one is kept
unless a richer one is better by more than one standard error, and the others are only tried where
a score test of the linear fit, which takes no other fit, says that there may be more to find.
"""

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from diw.matching.estimators import Estimator
from diw.matching.gram import Basis, FloatArray
from diw.matching.kmm import OnFailure, as_values, check_choice, check_gamma, check_positive
from diw.matching.match import Values, settle
from diw.matching.problem import make_problem
from diw.matching.regression import Expansion, Fit, fit
from diw.matching.ulsif import spread_out
from diw.seeding import numpy_generator

CENTRES = 30
CANDIDATES = 200  # among which the centres are
NARROWER = 4.0  # the second γ that is tried, in units of the median rule's
FEW_COLUMNS = 10  # up to which squares and products are tried: 65 features
MANY_COLUMNS = 200  # beyond which as many leading directions stand for the columns
CHOOSING = 1000  # training values, and trusted ones, at most, that choose λ and the family
FACTOR, REACH = math.sqrt(10.0), 3
"""The step of λ in its search, and how many steps lead from one fit to the next."""
MARGIN = 0.5  # standard errors by which a smaller λ must be likelier
SMALLEST, LARGEST = 1e-3, 1e4  # of λ
DOUBT = 2.5  # standard deviations of the score test beyond which richer families are tried
LIGHT = 0.3  # the λ of that test
ROUGHLY = 1e-3  # the residual that is enough to choose by
FLAT = 1e-13  # a column whose spread is this small beside its values is constant


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Logistic(Estimator):
    """Weights by logistic regression between trusted and training values.

    Attributes:
        family_: "linear", "quadratic", "kernels", or several of them joined by " + ".
        penalty_: λ.
        gamma_: γ of the kernels; 0 where none were taken.
        coef_: (p + 1,) the intercept and the coefficients of the features.
    """

    features: Literal["any", "linear"] = "any"
    """"any" of the families, or "linear" for the columns alone."""
    gamma: float | str | None = None
    """Asks for kernels of this width alone, as in `kmm`."""
    penalty: float | None = None
    """λ; None is chosen by leaving one out."""
    bound: float = 50.0
    """B, the largest weight."""
    tol: float = 1e-8
    """The largest relative residual that counts as solved."""
    on_failure: OnFailure = "raise"
    """What to do where that is not reached: "raise" or "warn"."""

    def _check(self) -> None:
        check_choice("features", self.features, ("any", "linear"))
        check_gamma(self.gamma)
        if self.features == "linear" and self.gamma is not None:
            raise ValueError("gamma: asks for kernels, which features='linear' leaves out")
        if self.penalty is not None:
            check_positive("penalty", self.penalty)
        check_positive("bound", self.bound)
        check_positive("tol", self.tol)
        check_choice("on_failure", self.on_failure, ("raise", "warn"))

    def _fit(self, train: Values, trusted: Values) -> tuple[FloatArray, str]:
        ours, theirs = as_values("train", train), as_values("trusted", trusted)
        self._problem = problem = make_problem(
            ours, theirs, gamma=self.gamma, rule="median", enough=128
        )
        z, n, m = problem.columns, problem.n, len(theirs)
        y = np.repeat([0.0, 1.0], [n, m])
        some = np.concatenate([_among(n), n + _among(m)])
        offered = families(z[some], problem.gamma, self.gamma is not None)
        offered = offered[:1] if self.features == "linear" else offered
        self._family, rough = choose(offered, z[some], y[some], self.penalty)
        start = rough.a.copy()
        start[0] += math.log(m / n) - math.log(y[some].sum() / (1.0 - y[some]).sum())
        found = fit(self._family.of(z), y, rough.penalty, start, 0.1 * self.tol)
        self.coef_, self.penalty_, self.family_ = found.a, found.penalty, self._family.name
        self.gamma_ = problem.given_gamma * self._family.factor
        solved = found.residual <= self.tol
        status = "optimal" if solved else f"not solved to tol={self.tol:g}"
        failure = f"Logistic: {status}, the residual is {found.residual:.1e}"
        settle(solved, failure, self.on_failure)
        self._odds = math.log(m / n)
        return self._ratio(found.log_odds[:n]), status

    def _ratio(self, log_odds: FloatArray) -> FloatArray:
        cut = np.minimum(log_odds - self._odds, math.log(self.bound))
        return np.minimum(np.exp(cut), self._most)

    def _predict(self, z: FloatArray) -> FloatArray:
        return self._ratio(self.coef_ @ self._family.of(self._problem.placed(z)))


def _among(size: int) -> np.ndarray:
    """The places of up to `CHOOSING` values, always the same."""
    if size <= CHOOSING:
        return np.arange(size)
    generator = numpy_generator(0, "values that choose a family")
    return np.sort(generator.choice(size, CHOOSING, replace=False, shuffle=False))


@dataclass(frozen=True)
class Family:
    """Features φ: the standardised columns, their products, kernels."""

    centre: FloatArray
    scale: FloatArray
    """(d,) 0 of a constant column."""
    turn: FloatArray | None
    """(p, d) leading directions of many columns."""
    linear: bool = True
    products: bool = False
    basis: Basis | None = None
    factor: float = 0.0
    """γ of the kernels in units of the problem's; 0 without."""

    @property
    def name(self) -> str:
        """What is in it."""
        words = {"linear": self.linear and not self.products, "quadratic": self.products}
        return " + ".join(
            word for word, there in (words | {"kernels": self.basis}).items() if there
        )

    def of(self, z: FloatArray) -> FloatArray:
        """After a row of ones, the features (1 + p, N) of values (N, d)."""
        rows = [np.ones((1, len(z)))]
        if self.linear:
            columns = ((z - self.centre) * self.scale).T[self.scale > 0]
            rows.append(columns if self.turn is None else self.turn @ columns)
            if self.products:
                rows += [columns[i:] * columns[i] for i in range(len(columns))]
        if self.basis is not None:
            rows.append(self.basis.columns(z)[0])
        return np.concatenate(rows)


def families(z: FloatArray, gamma: float, fixed: bool) -> list[Family]:
    """From simple to rich, for values like `z` (N, d); with a `fixed` γ only its kernels."""
    centre, spread = z.mean(0), z.std(0)
    varies = spread > FLAT * np.abs(centre)
    scale = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
    turn = None
    if varies.sum() > MANY_COLUMNS:
        turn = leading(((z - centre) * scale)[:, varies], MANY_COLUMNS).T
    few = 0 < varies.sum() <= FEW_COLUMNS
    simple = [
        Family(centre, scale, turn, products=products) for products in (False, True)[: 1 + few]
    ]
    if gamma == 0 or not varies.any():
        return simple
    centres = z[spread_out(z, CENTRES, CANDIDATES)]
    wide, narrow = (
        Basis.of(centres, factor * gamma, 1e-8 * len(centres)) for factor in (1.0, NARROWER)
    )
    own = Family(centre, scale, turn, linear=False, basis=wide, factor=1.0)
    if fixed:
        return [own]
    both = Family(centre, scale, turn, products=few, basis=wide, factor=1.0)
    return [
        *simple, own, both,
        Family(centre, scale, turn, linear=False, basis=narrow, factor=NARROWER),
    ]  # fmt: skip


def leading(z: FloatArray, count: int) -> FloatArray:
    """(d, count) orthonormal directions along which centred values (N, d) vary most.

    A block of random ones, turned there by three power steps (Halko, Martinsson & Tropp 2011). Only
    what they span matters: ‖a‖ is the same in any basis of it.
    """
    basis = numpy_generator(0, "leading directions").normal(size=(z.shape[1], count))
    for _ in range(3):
        basis = np.linalg.qr(z.T @ (z @ basis))[0]
    return basis


def choose(
    among: list[Family], z: FloatArray, y: FloatArray, penalty: float | None
) -> tuple[Family, Fit]:
    """The simplest family that the best does not surpass by more than one standard error."""
    features = [among[0].of(z)]
    if len(among) == 1 and penalty is not None:
        return among[0], fit(features[0], y, penalty, np.zeros(len(features[0])), ROUGHLY)
    tried = [best_penalty(features[0], y, penalty)]
    if len(among) > 1:
        # New features of the quadratic family, and narrow kernels, which see for wide ones.
        new = [among[1].of(z)[len(features[0]) :]] if among[1].products else []
        new += [family.of(z)[1:] for family in among[1:] if family.factor == NARROWER]
        if any(doubt(features[0], y, tried[0][0], kind) > DOUBT for kind in new):
            features += [family.of(z) for family in among[1:]]
            tried += [best_penalty(X, y, penalty) for X in features[1:]]
    best = max((scores for _, scores in tried), key=lambda scores: float(scores.mean()))
    place = next(i for i, (_, scores) in enumerate(tried) if _lead(best, scores) <= 1.0)
    return among[place], tried[place][0]


def _lead(scores: FloatArray, others: FloatArray) -> float:
    """How much larger the mean of these scores (N,) is than of others, in standard errors."""
    lead = scores - others
    return float(lead.mean()) / max(float(lead.std()) / math.sqrt(len(lead)), FLAT)


def doubt(X: FloatArray, y: FloatArray, found: Fit, new: FloatArray) -> float:
    """How much new features (·, N) would add to a fit, by a score test (Rao 1948).

    The gradient s along them, freed of the old ones, has mean 0 and covariance V where the model
    holds. sᵀ(V + λI)⁻¹s is twice what one Newton step along them promises to gain; with
    A = (V + λI)⁻¹V, its mean is tr A and its variance 2 tr A².

    Returns:
        How far that is above its mean, in standard deviations.
    """
    root, missing = np.sqrt(found.p * (1.0 - found.p)), y - found.p
    old, added = X * root, new * root
    shared = old @ added.T
    across = np.linalg.solve(old @ old.T + 1e-12 * np.eye(len(old)), shared)
    s, V = new @ missing - (X @ missing) @ across, added @ added.T - shared.T @ across
    inverse = np.linalg.inv(V + LIGHT * np.eye(len(V)))
    A = np.eye(len(V)) - LIGHT * inverse
    gain = float(s @ inverse @ s) - float(np.trace(A))
    return gain / math.sqrt(2.0 * float((A * A.T).sum()) + FLAT)


def best_penalty(X: FloatArray, y: FloatArray, penalty: float | None) -> tuple[Fit, FloatArray]:
    """Up the likelihood left out, in steps of `FACTOR`: the fit, and the scores of its values.

    The more features, the larger the λ that they need, so the search begins at their number.
    It goes down only on evidence, since large weights do more harm than small ones.
    """
    first = max(1.0, len(X) - 1.0) if penalty is None else float(penalty)
    start = np.zeros(len(X))
    start[0] = math.log(y.sum() / (1.0 - y).sum())
    found = fit(X, y, first, start, ROUGHLY)
    around = Expansion(X, y, found)
    scores = around.near(first)[1]
    factors = (1.0 / FACTOR, FACTOR) if penalty is None else ()
    while factors:
        moved, best, a = 0, found.penalty, found.a
        for factor in factors:
            while moved < REACH and SMALLEST <= best * factor <= LARGEST:
                there, theirs = around.near(best * factor)
                if _lead(theirs, scores) <= (MARGIN if factor < 1 else 0.0):
                    break
                moved, best, a, scores = moved + 1, best * factor, there, theirs
            if moved:
                factors = (factor,)  # never back
                break
        if moved:
            found = fit(X, y, best, a, ROUGHLY)
        if moved < REACH:
            break
        around = Expansion(X, y, found)
        scores = around.near(best)[1]
    return found, scores
