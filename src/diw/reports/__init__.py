"""From finished run records to a reader's eyes; nothing here trains or imports torch.

records → summary → comparison (its table and its finding) → figures → page. What other reports
are made of can be imported from here; names are resolved on first use.
"""

from typing import TYPE_CHECKING

from diw._lazy import names_from

if TYPE_CHECKING:
    from diw.reports.figures import COLOURS as COLOURS
    from diw.reports.figures import INK as INK
    from diw.reports.figures import MUTED as MUTED
    from diw.reports.figures import RULE as RULE
    from diw.reports.figures import Curve as Curve
    from diw.reports.figures import curve as curve
    from diw.reports.figures import settled_range as settled_range
    from diw.reports.statistics import LEVEL as LEVEL
    from diw.reports.statistics import Standing as Standing
    from diw.reports.statistics import mean_and_std as mean_and_std
    from diw.reports.statistics import paired_interval as paired_interval
    from diw.reports.statistics import paired_p_value as paired_p_value
    from diw.reports.statistics import standings as standings
    from diw.reports.summary import Summary as Summary
    from diw.reports.summary import summarise as summarise
    from diw.reports.words import short_shift as short_shift

__getattr__ = names_from(
    __name__,
    {
        "figures": "COLOURS INK MUTED RULE Curve curve settled_range",
        "statistics": "LEVEL Standing mean_and_std paired_interval paired_p_value standings",
        "summary": "Summary summarise",
        "words": "short_shift",
    },
)
