"""Long tests, to be run for hours: each goes on where it stopped. `make test` runs short forms."""
