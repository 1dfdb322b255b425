"""The command `diw`: one file a verb; heavy imports inside the verbs, so that `--help` is quick."""
