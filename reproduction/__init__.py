"""The paper's tables and figures, ours beside theirs: `python -m reproduction`.

It is no part of the installed package, and uses of `diw` what is public. From specs to a page:
`catalogue` (the results) → `plan` (their runs) → `order` (those asked for, `kept` or trained with
`observers`) → `results` (what the runs say) → `tables`, `claims`, `figures` → `page`.
"""
