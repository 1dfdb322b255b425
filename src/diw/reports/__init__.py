"""From finished run records to a reader's eyes; nothing here trains or imports torch.

records → summary → comparison → table (formats) and page (figures)
"""

from diw.reports.compare_table import compare_table
from diw.reports.comparison import Comparison, Trial, compare_runs
from diw.reports.page import write_report
from diw.reports.summary import Summary, results_json, summarise
from diw.reports.table import show
from diw.reports.tables import Cell, Column, Table

__all__ = [
    "Cell",
    "Column",
    "Comparison",
    "Summary",
    "Table",
    "Trial",
    "compare_runs",
    "compare_table",
    "results_json",
    "show",
    "summarise",
    "write_report",
]
