"""From finished run records to a reader's eyes; nothing here trains or imports torch.

records → summary → comparison (its table and its finding) → figures → page. What other reports
are made of can be imported from here.
"""

from diw.reports.figures import COLOURS, INK, MUTED, RULE, Curve, curve, settled_range
from diw.reports.statistics import (
    LEVEL,
    Standing,
    mean_and_std,
    paired_interval,
    paired_p_value,
    standings,
)
from diw.reports.summary import Summary, summarise
from diw.reports.words import short_shift

__all__ = [
    "COLOURS",
    "INK",
    "LEVEL",
    "MUTED",
    "RULE",
    "Curve",
    "Standing",
    "Summary",
    "curve",
    "mean_and_std",
    "paired_interval",
    "paired_p_value",
    "settled_range",
    "short_shift",
    "standings",
    "summarise",
]
