"""Give `kmm` numbers of any magnitude, and check what it says by exact arithmetic.

    python -m tools.soak.numbers [--problems 100000] [--folder .soak/numbers] [--seed 0]

Values are up to ±1.7e308 and down to the smallest float, equal, nearly equal, of mixed magnitudes,
in one and two columns. Distances are computed as fractions of whole numbers and kernel values to
40 digits, so that nothing over- or underflows where float64 does. `kmm` may refuse a problem, with
a line that names an argument. Otherwise its weights must be finite, in [0, B] and in the band, and
its certificate must hold: w is optimal for a problem whose linear term differs by δ with
‖δ‖ ≤ ω·error bound, so the exact gradient g at w satisfies max_v g·(w − v) ≤ ‖δ‖·max_v ‖w − v‖
over all feasible v. The number reached is kept, so that a stopped soak goes on.
"""

import math
import random
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
from tools.soak.cases import WrongError, go_through, run_from_command_line

from diw import kmm
from diw.errors import MatchingError

mpmath.mp.dps = 40

LEAST_GAMMA = 1e-290
"""Beyond it γ is rounded, 0 or cut when it is reported; the problem is solved in scaled numbers."""
RULES = (None, "median", "quantile:0.01", "quantile:0.99", "scale")


def values(chance: random.Random, rows: int, columns: int) -> np.ndarray:
    """(rows, columns) numbers of one of several hostile kinds."""
    kind = chance.randrange(7)
    reach = chance.choice([1, 10, 100, 150, 155, 300, 308])

    def one() -> float:
        if kind == 0:
            return chance.gauss(0, 1)
        if kind == 1:  # any magnitude
            return chance.choice([-1, 1]) * 10 ** chance.uniform(-reach, min(reach, 307.9))
        if kind == 2:  # a few different values
            return float(chance.randrange(3))
        if kind == 3:  # equal but for the last bits
            return 1.0 + chance.randrange(4) * 2**-52
        if kind == 4:  # small beside a huge one
            return 10.0**reach if chance.random() < 0.2 and reach < 308 else chance.gauss(0, 1)
        if kind == 5:  # far from zero
            return 1e8 + chance.gauss(0, 1)
        return chance.choice([0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 1e-200, chance.gauss(0, 1)])

    return np.array([[one() for _ in range(columns)] for _ in range(rows)])


def check(number: int, seed: int) -> str:
    """Make a problem and solve it: "refused", or its status."""
    chance = random.Random(f"{seed} {number}")
    columns, n, m = chance.choice([1, 1, 2]), chance.randint(1, 6), chance.randint(1, 4)
    z, t = values(chance, n, columns), values(chance, m, columns)
    if chance.random() < 0.5:
        t = np.array([z[chance.randrange(n)] for _ in range(m)])
    given = chance.choice([*RULES, 10 ** chance.uniform(-5, 5)])
    options = {
        "gamma": given,
        "bound": chance.choice([50.0, 2.0, 1.0]),
        "slack": chance.choice([None, None, 0.1, 0.0]),
        "ridge": chance.choice([1e-5, 1e-5, 1e-2, 1.0]),
    }
    train, trusted = (z[:, 0], t[:, 0]) if columns == 1 else (z, t)
    try:
        match = kmm(train, trusted, **options)
    except ValueError as error:
        named = str(error).partition(":")[0] in ("z_train", "z_trusted", "gamma", "bound", "slack")
        if not named or "\n" in str(error):
            raise WrongError(f"{options} {z.tolist()} {t.tolist()}: {error}") from None
        return "refused"
    except MatchingError as error:
        raise WrongError(f"{options} {z.tolist()} {t.tolist()}: {error}") from None
    wrong = _wrong(z, t, match, options["bound"], options["slack"], options["ridge"])
    if wrong:
        raise WrongError(f"{options} {z.tolist()} {t.tolist()} {match}: {wrong}")
    return match.status


def _wrong(z, t, match, bound, slack, ridge) -> str:
    w, n = match.weights, len(z)
    slack = (math.sqrt(n) - 1) / math.sqrt(n) if slack is None else slack
    low, high = n * (1 - slack), n * (1 + slack)
    if not np.isfinite(w).all() or w.min() < 0 or w.max() > bound:
        return f"weights {w}"
    if not low - 1e-9 * n <= w.sum() <= high + 1e-9 * n:
        return f"the sum {w.sum()} is not in [{low}, {high}]"
    if match.status != "optimal" or not LEAST_GAMMA < match.gamma < 1 / LEAST_GAMMA:
        return ""
    exact = [mpmath.mpf(x) for x in w.tolist()]
    gradient = []
    for row in z:
        g = mpmath.mpf(ridge) * exact[len(gradient)]
        g += sum(_kernel(row, other, match.gamma) * x for other, x in zip(z, exact, strict=True))
        gradient.append(g - sum(_kernel(row, other, match.gamma) for other in t) * n / len(t))
    delta = ridge * match.error_bound
    gap = _gap(gradient, exact, bound, low, high)
    reach = math.sqrt(n) * bound
    if gap > delta * reach:
        return f"a gap of {mpmath.nstr(gap, 5)}, and the certificate allows {delta * reach:.2e}"
    return ""


def _kernel(a, b, gamma: float) -> mpmath.mpf:
    distance = sum(
        (Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a.tolist(), b.tolist(), strict=True)
    )
    exponent = Fraction(gamma) * distance
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def _gap(gradient, w, bound: float, low: float, high: float):
    """Max g·(w − v) over 0 ≤ v ≤ B with its sum in the band: v fills the smallest entries of g."""
    total, filled = mpmath.mpf(0), mpmath.mpf(0)
    for g in sorted(gradient):
        room = mpmath.mpf(bound)
        if g >= 0:  # only as much as the band demands
            room = min(room, max(mpmath.mpf(low) - filled, 0))
        room = min(room, mpmath.mpf(high) - filled)
        if room <= 0:
            break
        total, filled = total + g * room, filled + room
    return sum(g * x for g, x in zip(gradient, w, strict=True)) - total


def run_soak(folder: Path, problems: int, seed: int) -> None:
    """Check so many problems, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    go_through(folder, "problems", problems, lambda number: check(number, seed))


if __name__ == "__main__":
    run_from_command_line(run_soak, str(__doc__), "numbers", "problems", 100_000)
