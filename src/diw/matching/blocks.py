"""Matching of values that do not fit into memory: block by block, of which only sums are kept.

The solution of a match is w = clip((Vᵀy + η)·ω/d, 0, B) for r + 1 numbers y and η (newton.py), and
column i of the factor V depends on sample i and r pivots alone. So nothing of the size of the
data is ever held or sent: for a dual point each block gives Vw (r,), V diag(s) Vᵀ (r, r) and a few
numbers, wherever it is, and the sum over the blocks is all that Newton's method needs.

The pivots come from a sample. One number per sample needs few of them, and values that the sample
has missed are found and added until the factor is as exact as in memory. Of (n, d) values the
rank is capped, and the result says what is left out.
"""

import builtins
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from diw.brief import in_a_line
from diw.matching.gram import (
    EPSILON,
    LOSS_RANK_CAP,
    RANK_CAP,
    Basis,
    FloatArray,
    clip,
    magnitude,
    pivoted_cholesky,
    rounding,
)
from diw.matching.kmm import Options
from diw.matching.match import distance_bound, settle
from diw.matching.newton import NEWTON_STEPS, Dual, Hessian, Point, System, newton, solve_system
from diw.matching.problem import FEATURE_RULE, LOSS_RULE, default_slack, width
from diw.seeding import numpy_generator

SAMPLE = 20_000
"""Training values among which pivots are chosen."""
START_ENTRIES = 1 << 24
"""Of the factor of the sample whose solution Newton's method starts from: 128 MiB."""
WIDTH_SAMPLE = 200_000
"""Training values from which a rule for γ is computed."""
TRUSTED_SAMPLE = 5_000
"""Trusted values among which pivots are chosen."""
ENTRIES = 1 << 21
"""Of V at a time: 16 MiB."""
MISSED = 8
"""Values of each block that may become pivots because the sample has missed them."""
ENOUGH = 1e-10
"""What the factor may leave of the worst value's diagonal entry, of one; the same in the mean over
all values is far less, and the error bound counts it."""
ROUNDS = 6
"""Of looking for missed values; after these the rank counts as capped."""
CONTINUATION = (1e5, 1e4, 1e3, 1e2, 1e1)
"""Times the ridge, where Newton's method finds no short way without."""
LENGTHS = np.linspace(0, 1, 33)
"""Of a step: one pass gives the slope for all."""


class Block(Protocol):
    """Some of the training values; can be sent to another process, and read there."""

    @property
    def rows(self) -> int:
        """How many."""
        ...

    def read(self) -> FloatArray:
        """(c,) or (c, d), float64 and finite."""
        ...

    def write(self, weights: FloatArray) -> Any:
        """Keep the weights (c,) of these values."""
        ...


Map = Callable[..., Iterable[Any]]
"""(function, blocks) → function(block) for each, in their order, like the `map` of Python."""


@dataclass(frozen=True)
class BlockMatch:
    """What is known of a match of blocks; the weights are where the blocks put them."""

    __repr__ = in_a_line

    rows: int
    status: str
    gamma: float
    rank: int
    iterations: int
    passes: int
    """How often all blocks were read."""
    objective: float
    dual_residual: float
    """A bound of the residual, relative as in a `Match`."""
    error_bound: float
    """Of ‖w − w*‖, as in a `Match`."""
    trace_error: float
    mean: float
    effective_sample_size: float
    largest: float
    share_at_zero: float
    share_at_bound: float


def kmm_blocks(
    blocks: Sequence[Block],
    z_trusted: FloatArray,
    *,
    map: Map = builtins.map,
    sample: int = WIDTH_SAMPLE,
    **options: Any,
) -> BlockMatch:
    """`kmm` for training values that are read, block by block, as often as they are needed.

    Args:
        blocks: The training values; each also takes its weights.
        z_trusted: (m,) or (m, d) trusted values, in memory.
        map: How a function is applied to all blocks: here, or on a cluster.
        sample: From how many values a rule for γ is computed and Newton's method starts.
        options: The keywords of `kmm`; the solver is "exact".

    Raises:
        ValueError: An argument cannot work; the message names it.
        MatchingError: The problem was not solved to `tol`.
    """
    asked = Options(**options)
    if asked.solver != "exact":
        raise ValueError(f"solver: blocks are matched by 'exact' alone, not {asked.solver!r}")
    trusted = as_matrix(np.asarray(z_trusted, dtype=np.float64))
    return _Matcher(blocks, trusted, asked, map, sample).run()


class _Matcher:
    def __init__(
        self, blocks: Sequence[Block], trusted: FloatArray, options: Options, map: Map, sample: int
    ) -> None:
        self.blocks, self.trusted, self.options, self.map = blocks, trusted, options, map
        self.n, self.passes, self.sample = sum(block.rows for block in blocks), 0, sample

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """A function of every block: one pass over the data."""
        self.passes += 1
        return list(self.map(partial(function, *arguments), self.blocks))

    def run(self) -> BlockMatch:
        options, n = self.options, self.n
        sample = np.concatenate(self.each(drawn, min(1.0, self.sample / n)))
        rule = options.gamma or (LOSS_RULE if sample.shape[1] == 1 else FEATURE_RULE)
        gamma = width(sample, rule) if isinstance(rule, str) else float(rule)
        slack = default_slack(n) if options.slack is None else options.slack
        basis, capped = self.basis(sample[:: max(1, len(sample) // SAMPLE)], gamma)
        V, left = basis.columns(self.trusted)
        b, left_trusted = V.sum(1) * (n / V.shape[1]), float(np.sqrt(left).sum()) * n / V.shape[1]
        system = _Blocks(self, basis, capped, b, float(options.ridge), float(options.bound))
        point, steps = self.solve(system, sample)
        low, high = n * (1 - slack), n * (1 + slack)
        total = point.sums.total
        if not low <= total <= high:  # the nearer end binds, by convexity
            end = low if total < low else high
            point, more = self.solve(replace(system, total=end, above=total > high), sample)
            steps += more
        return self.certified(system, point, steps, left_trusted)

    def basis(self, sample: FloatArray, gamma: float) -> tuple[Basis, bool]:
        """Pivots from a sample; where the rank is not capped, as good for all values as for it."""
        options, loss = self.options, sample.shape[1] == 1
        cap = options.rank or (LOSS_RANK_CAP if loss else RANK_CAP)
        some = self.trusted[:: max(1, len(self.trusted) // TRUSTED_SAMPLE)]
        for _ in range(ROUNDS + 1):
            z = np.concatenate([sample, some])
            factor = pivoted_cholesky(
                z[:, 0] if loss else z, len(sample), gamma, float(options.ridge), min(cap, len(z))
            )
            basis = Basis.of(z[list(factor.pivots)], gamma)
            if factor.capped:
                return basis, True
            found = self.each(missed, basis)
            if max(worst for _, worst in found) <= ENOUGH:
                return basis, False
            sample = np.concatenate([sample, *(values for values, _ in found)])
        return basis, True  # pyright: ignore[reportPossiblyUnboundVariable]

    def solve(self, system: "_Blocks", sample: FloatArray) -> tuple["_BlockPoint", int]:
        """The dual point and the number of steps: Newton's method from a sample's solution."""
        sample = sample[:: max(1, len(sample) * len(system.b) // START_ENTRIES)]
        share = len(sample) / self.n
        V, left = system.basis.columns(sample)
        total = None if system.total is None else system.total * share
        thinned = System(
            V, system.b * share, system.ridge * share, system.bound, total,
            left * share if system.capped else None, system.above,
        )  # fmt: skip
        first, _ = solve_system(thinned, self.options.max_iterations)
        start = system.point(first.y, first.eta)
        point, steps, done = newton(system, start, NEWTON_STEPS)
        if not done:  # a larger ridge has a shorter way; its solution is the next one's start
            point = start
            for factor in (*CONTINUATION, 1.0):
                larger = replace(system, ridge=factor * system.ridge)
                point, more, _ = newton(larger, larger.point(point.y, point.eta), NEWTON_STEPS)
                steps += more
        return point, steps

    def certified(
        self, system: "_Blocks", point: "_BlockPoint", steps: int, left_trusted: float
    ) -> BlockMatch:
        """Let the blocks take their weights, and compute residuals and a bound of the error."""
        Vw, n, omega, basis = point.sums.Vw, self.n, system.ridge, system.basis
        found = self.each(finish, system.rule, point.y, point.eta, system.b, Vw)
        sums = {name: sum(part[name] for part in found) for name in found[0]}
        highest = {name: max(part[name] for part in found) for name in found[0]}
        scale = max(highest["k"], highest["Kw"], min(1.0, system.bound))
        objective = 0.5 * (float(Vw @ Vw) + omega * sums["square"]) - float(system.b @ Vw)
        left_out = math.sqrt(sums["left"]) * (sums["root"] + left_trusted)
        if system.capped:
            objective += 0.5 * sums["kept"]
            left_out += math.sqrt(sums["kept_square"])
        residual = float(np.linalg.norm(point.F))  # ‖V_i‖ ≤ 1, so that |F·V_i| is at most this
        # V is L⁻¹k, of which each row rounds by ε per pivot.
        far = max(highest["far"], float((self.trusted**2).sum(1).max()))
        each = rounding(basis.gamma, far, basis.pivots.shape[1]) + len(Vw) ** 2 * EPSILON
        total, tol = sums["total"], self.options.tol
        settle(
            residual / scale <= tol,
            f"kernel mean matching of blocks: not solved to tol={tol:g} in {steps} "
            f"iterations; the residual is {residual / scale:.1e}",
            self.options.on_failure,
        )
        return BlockMatch(
            rows=n,
            status="approximate" if system.capped else "optimal",
            gamma=basis.gamma,
            rank=len(Vw),
            iterations=steps,
            passes=self.passes,
            objective=objective,
            dual_residual=residual / scale,
            error_bound=distance_bound(
                residual * math.sqrt(n) + left_out, each, n, total, scale, omega
            ),
            trace_error=sums["left"] / n,
            mean=total / n,
            effective_sample_size=total**2 / max(n * sums["square"], 1e-300),
            largest=highest["largest"],
            share_at_zero=sums["zeros"] / n,
            share_at_bound=sums["bounds"] / n,
        )


@dataclass(frozen=True)
class _Rule:
    """What a block needs to know to turn a dual point into weights."""

    basis: Basis
    capped: bool
    ridge: float
    bound: float

    def parts(self, block: Block) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Some values (c, d) at a time, V (r, c), and what it leaves of the diagonal (c,)."""
        z, step = as_matrix(block.read()), max(256, ENTRIES // len(self.basis.pivots))
        for start in range(0, len(z), step):
            part = z[start : start + step]
            yield part, *self.basis.columns(part)

    def weights(
        self, V: FloatArray, left: FloatArray, y: FloatArray, eta: float
    ) -> tuple[FloatArray, FloatArray]:
        """(c,) the weights of a dual point before clipping, and ω/d."""
        ratio = self.ridge / (self.ridge + left) if self.capped else np.ones_like(left)
        return (y @ V + eta) * ratio, ratio


@dataclass(frozen=True)
class _Sums:
    """What a dual point gives, summed over samples."""

    Vw: FloatArray
    total: float
    gram: FloatArray
    """V diag(s) Vᵀ, s = ω/d of the free weights."""
    Vs: FloatArray
    free: float

    def __add__(self, other: "_Sums") -> "_Sums":
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Sums(*(a + b for a, b in both))


@dataclass(slots=True)
class _BlockPoint(Point):
    sums: _Sums


@dataclass(frozen=True)
class _Blocks(Dual[_BlockPoint]):
    """The problem on blocks: each dual point is a pass over them."""

    matcher: _Matcher
    basis: Basis
    capped: bool
    b: FloatArray
    ridge: float
    bound: float
    total: float | None = None
    above: bool = False

    @property
    def size(self) -> int:
        """The number of samples, n."""
        return self.matcher.n

    @property
    def rounding(self) -> float:
        """Of V = L⁻¹k, whose rows round more than those of a factor; a cut one is less exact."""
        return 1e-9 if self.capped else 1e-11

    @property
    def rule(self) -> _Rule:
        """For the blocks."""
        return _Rule(self.basis, self.capped, self.ridge, self.bound)

    def point(self, y: FloatArray, eta: float) -> _BlockPoint:
        """A dual point."""
        sums: _Sums = reduce(add, self.matcher.each(sums_of, self.rule, y, eta))
        excess = 0.0 if self.total is None else sums.total - self.total
        return _BlockPoint(y, eta, self.ridge * y - self.b + sums.Vw, excess, sums)

    def moved(self, point: _BlockPoint, dy: FloatArray, deta: float) -> _BlockPoint:
        """One step further."""
        return self.point(point.y + dy, point.eta + deta)

    def hessian(self, point: _BlockPoint) -> Hessian:
        """The second derivative at a dual point, which its pass has given."""
        at = point.sums
        return Hessian(at.gram.copy, lambda: at.Vs, lambda g: at.free - float(g @ at.Vs))

    def same_piece(self, point: _BlockPoint, before: _BlockPoint) -> bool:
        """Nobody keeps which weights are free: a residual of rounding's size stands for it."""
        return magnitude(point.F) <= 1e3 * self.rounding * max(magnitude(self.b), 1.0)

    def slope(self, point: _BlockPoint, dy: FloatArray, deta: float) -> Callable[[float], float]:
        """The slope along a direction: from one pass, interpolated between `LENGTHS`."""

        def at(lengths: FloatArray) -> FloatArray:
            rule, y, eta = self.rule, point.y, point.eta
            pushed = np.sum(self.matcher.each(along, rule, y, eta, dy, deta, lengths), axis=0)
            own = self.ridge * (y @ dy + lengths * (dy @ dy)) - self.b @ dy
            return own + pushed - deta * (self.total or 0.0)

        slopes = at(LENGTHS)

        def slope(t: float) -> float:
            near = t <= LENGTHS[-1]
            return float(np.interp(t, LENGTHS, slopes) if near else at(np.array([t]))[0])

        return slope


def as_matrix(z: FloatArray) -> FloatArray:
    """(c, d) values, d = 1 for one number per sample."""
    return z[:, None] if z.ndim == 1 else z


def drawn(share: float, block: Block) -> FloatArray:
    """A share of a block's values, at random, (c, d)."""
    z = as_matrix(block.read())
    size = max(1, min(len(z), math.ceil(share * len(z))))
    if size == len(z):
        return z
    rows = numpy_generator(0, "sample of a part", len(z)).choice(len(z), size, replace=False)
    return z[np.sort(rows)]


def missed(basis: Basis, block: Block) -> tuple[FloatArray, float]:
    """The values that the factor represents worst, (c, d), and what is left of the worst."""
    values: list[FloatArray] = []
    amounts: list[FloatArray] = []
    for z, _, left in _Rule(basis, False, 1.0, 1.0).parts(block):
        worst = left.argsort()[-MISSED:]
        values.append(z[worst])
        amounts.append(left[worst])
    left, z = np.concatenate(amounts), np.concatenate(values)
    order = left.argsort()[-MISSED:]
    return z[order[left[order] > 1e-11]], float(left.max())


def sums_of(rule: _Rule, y: FloatArray, eta: float, block: Block) -> _Sums:
    """What a dual point gives of this block."""
    total: list[_Sums] = []
    for _, V, left in rule.parts(block):
        u, ratio = rule.weights(V, left, y, eta)
        w = clip(u, rule.bound)
        s = ratio * (w == u)
        Vw, Vs = V @ w, V @ s
        np.multiply(V, np.sqrt(s), out=V)
        # Of a matrix and its own transpose, BLAS computes one half.
        total = [reduce(add, [*total, _Sums(Vw, float(w.sum()), V @ V.T, Vs, float(s.sum()))])]
    return total[0]


def along(
    rule: _Rule,
    y: FloatArray,
    eta: float,
    dy: FloatArray,
    deta: float,
    lengths: FloatArray,
    block: Block,
) -> FloatArray:
    """(t,) Σ_i w_i(t) (V_i·dy + dη) at some lengths t of a step."""
    result = np.zeros(len(lengths))
    for _, V, left in rule.parts(block):
        u, ratio = rule.weights(V, left, y, eta)
        plain = dy @ V + deta
        for place, length in enumerate(lengths):
            result[place] += plain @ clip(u + length * plain * ratio, rule.bound)
    return result


def finish(
    rule: _Rule, y: FloatArray, eta: float, b: FloatArray, Vw: FloatArray, block: Block
) -> dict[str, float]:
    """Write the weights of a block; what the certificate needs to know of them."""
    weights: list[FloatArray] = []
    rows: list[dict[str, float]] = []
    for z, V, left in rule.parts(block):
        w = clip(rule.weights(V, left, y, eta)[0], rule.bound)
        weights.append(w)
        kept = left * w
        rows.append(
            {
                "total": float(w.sum()), "square": float(w @ w), "left": float(left.sum()),
                "root": float(np.sqrt(left) @ w), "kept": float(kept @ w),
                "kept_square": float(kept @ kept), "zeros": float((w == 0).sum()),
                "bounds": float((w >= rule.bound * (1 - 1e-6)).sum()), "largest": float(w.max()),
                "k": magnitude(b @ V), "Kw": magnitude(Vw @ V), "far": float((z * z).sum(1).max()),
            }
        )  # fmt: skip
    block.write(np.concatenate(weights))
    most = ("k", "Kw", "largest", "far")
    return {name: (max if name in most else sum)(row[name] for row in rows) for name in rows[0]}
