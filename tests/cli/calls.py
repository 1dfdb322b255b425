"""A call of every verb that writes, in a copy of `trained`, and what it reads."""

from tests.own_data import TRAIN

OWN = ("--data", "train.csv", "--trusted", "trusted.csv", "--test", "test.csv", "--label", "status")
CALLS = {
    "audit": ("audit", "model", "--device", "cpu", "--out", "check"),
    "compare": ("compare", *OWN, "--epochs", "1", "--seeds", "1", "--device", "cpu", "--out", "r"),
    "data": ("data",),
    "data check": ("data", "check", "fashion-mnist"),
    "data fetch": ("data", "fetch", "fashion-mnist"),
    "diagnose": ("diagnose", *OWN[:4], *OWN[6:]),
    "evaluate": ("evaluate", "model", "test.csv", "--device", "cpu"),
    "export-weights": ("export-weights", "model", "--device", "cpu", "--out", "e.csv"),
    "methods": ("methods",),
    "predict": ("predict", "model", "new.csv", "--device", "cpu", "--out", "p.csv"),
    "report": ("report", "model"),
    "train": (*TRAIN, *OWN, "--out", "model"),
    "trust": ("trust", "draw", "train.csv", "--label", "status", "-n", "9", "--out", "drawn"),
    "trust draw": ("trust", "draw", "train.csv", "--label", "status", "-n", "9", "--out", "drawn"),
    "trust read": ("trust", "read", "checked/check.csv", "--out", "v.csv"),
    "weights": ("weights", "train.csv", "trusted.csv", "--out", "w.csv"),
}
READS = {
    "audit": ("train.csv", "trusted.csv", "model/spec.json", "model/weights.npy"),
    "compare": OWN[1:6:2],
    "diagnose": OWN[1:4:2],
    "evaluate": ("test.csv", "train.csv", "model/model.safetensors"),
    "export-weights": ("train.csv", "model/rows.csv"),
    "predict": ("new.csv", "train.csv", "trusted.csv", "model/encoding.json"),
    "report": ("train.csv", "test.csv", "model/metrics.jsonl"),
    "train": OWN[1:6:2],
    "trust draw": ("train.csv",),
    "trust read": ("checked/check.csv", "checked/draw.json", "train.csv"),
    "weights": ("train.csv", "trusted.csv"),
}
