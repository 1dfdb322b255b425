"""The paper's tables and figures from run records, ours beside theirs.

experiment.json + runs → results → tables, claims, figures → files and page
"""

from diw.reports.paper.page import write_page
from diw.reports.paper.results import Sheet, read_sheet
from diw.reports.paper.write import Section, read_section, write_sheet

__all__ = ["Section", "Sheet", "read_section", "read_sheet", "write_page", "write_sheet"]
