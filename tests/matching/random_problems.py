"""Random matching problems over everything that makes them hard, each determined by its number."""

import numpy as np

from diw.seeding import numpy_generator

RULES = ("quantile:0.01", "median", "quantile:0.99", "scale")


def random_problem(number: int, *, largest: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Training values, trusted values and options of the problem with that number.

    Sizes from 1 to `largest`; values exponential, heavy-tailed, tied, duplicated,
    clustered or spread over decades, with or without columns; γ over twelve
    decades or by a rule; ridges 1e-6…10; bounds and bands that bind.
    """
    rng = numpy_generator(0, "random matching problem", number)
    n = int(np.exp(rng.uniform(0, np.log(largest + 1))))
    m = int(np.exp(rng.uniform(0, np.log(201))))
    columns = int(rng.choice([0, 0, 0, 1, 2, 5, 30]))

    def draw(kind: str, size: int) -> np.ndarray:
        shape = (size, columns) if columns else (size,)
        if kind == "exponential":
            return rng.exponential(1.0, shape)
        if kind == "heavy":
            return rng.standard_t(1.5, shape)
        if kind == "tied":
            return rng.integers(0, 6, shape).astype(float)
        if kind == "decades":
            return np.exp(3 * rng.normal(size=shape))
        return rng.normal(size=shape)

    kind = str(rng.choice(["exponential", "heavy", "tied", "decades", "normal"]))
    train = draw(kind, n)
    relation = str(rng.choice(["same", "shifted", "subset", "cluster", "other"]))
    if relation == "subset":
        trusted = train[rng.integers(0, n, m)]
    elif relation == "cluster":
        trusted = 0.1 * draw("normal", m) + 3 * rng.normal()
    elif relation == "other":
        trusted = draw(str(rng.choice(["exponential", "heavy", "tied", "normal"])), m)
    else:
        trusted = draw(kind, m) + (1.0 if relation == "shifted" else 0.0)
    if rng.random() < 0.15:  # duplicates
        train = train[rng.integers(0, n, n)]
    gamma = 10 ** rng.uniform(-6, 6) if rng.random() < 0.6 else str(rng.choice(RULES))
    slack = rng.choice([0.0, 0.01, 0.1, 0.5, 2.0, -1.0])
    options = {
        "gamma": gamma,
        "ridge": 10 ** rng.uniform(-6, 1),
        "slack": None if slack < 0 else float(slack),
        "bound": float(rng.choice([1.0, 1.5, 3.0, 10.0, 50.0, 1000.0])),
    }
    return train, trusted, options
