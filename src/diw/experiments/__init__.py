"""Runs as data: what to run (`spec`), running one (`execute`), running many (`grid`)."""
