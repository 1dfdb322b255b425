"""Wrong use of any verb: one line that names what is wrong, exit code 2, and nothing is written."""

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calls import OWN
from tests.own_data import TRAIN, contents, refused

TRAINING = shlex.join([*TRAIN, *OWN, "--out", "m"])
CASES = f"""
compare --methods dwi | --methods | 'dwi' | did you mean diw | uniform
compare --shift foo | --shift | 'foo' | symmetric:RATE | pair:RATE
compare --shift symmetric:1 | --shift | [0, 1)
compare --shift symmetric:-0.1 | --shift | [0, 1)
compare --data foo | --data | 'foo' | embedded
compare --epochs -3 | --epochs | -3
compare --seeds 0 | --seeds | 0
compare --lr -1 | --lr | -1
compare --lr inf | --lr | inf
compare --trusted 0 | --trusted | at least one
compare --trusted -5 | --trusted | -5
compare --trusted 99999 | --trusted | 99999 | 10000
compare --set remember.foo=1 | --set remember.foo | no field 'foo' | bound
compare --set remember.bound=x | --set remember.bound | 'x'
compare --set remember.bound=0.5 | --set remember.bound | at least 1
compare --set diw.bound | --set | METHOD.FIELD=VALUE
compare --set reweight.x=1 | --set | reweight is not trained here; only uniform, random, remember
compare --methods diw --set diw.bound=inf | --set diw.bound | inf
compare --methods diw --set diw.gamma=inf | --set diw.gamma | inf
compare --model os:getcwd | --model | os:getcwd
compare --model vgg | --model | 'vgg' | lenet5
compare --test nope.csv | nope.csv | no such file
compare --device tpu | --device | 'tpu' | cuda
compare --json no/folder/x.json | --json | no/folder
compare --out file/runs | --out | file/runs
compare --data ragged.csv | diw: ragged.csv | 1 cells
compar | did you mean diw compare?
xyz | No such command 'xyz'
{TRAINING} --method dwi | --method | did you mean diw
{TRAINING} --set bound | --set | METHOD.FIELD=VALUE
{TRAINING} --set foo=1 | --set remember.foo | no field 'foo'
{TRAINING} --set reweight.x=1 | --set | reweight is not trained here; only remember
{TRAINING} --data missing.csv | --data | 'missing.csv'
{TRAINING} --label colours | train.csv | 'colours' | size, weight, colour, status
{TRAINING} --trusted 10 | --trusted | clean
{TRAINING} --trusted missing.csv | missing.csv
{TRAINING} --test train.csv | --test | 80 of 80 test rows | leaks
{TRAINING} --model lenet5 | --model | needs images
{TRAINING} --json no/folder/r.json | --json | no/folder
predict model new.csv --out p.xlsx | --out | p.xlsx | .csv, .npz, .parquet
predict model new.csv --out no/folder/p.csv | --out | no/folder
predict model new.csv | --out
predict model missing.csv --out p.csv | missing.csv | no such file
predict missing new.csv --out p.csv | missing: no such run
predict empty new.csv --out p.csv | holds no run
predict . new.csv --out p.csv | holds 4 runs; choose one | model (remember seed 0)
predict model wide.npz --out p.csv | wide.npz | 3 columns | (9,)
predict model narrow.csv --out p.csv | narrow.csv | 'weight'
predict model photos --out p.csv | photos | tables
predict model words.csv --out p.csv | words.csv | 'big' in row 1 | 'size'
predict model words.csv --out words.csv | --out | choose another name
evaluate model new.csv | no column 'status'
evaluate model --label status | --label
evaluate model --json no/folder/s.json | --json | no/folder
evaluate missing | no such run
evaluate model photos | tables
evaluate model lost.csv --json s | lost.csv: label 'lost' in row 1 is not a class of the training
evaluate model other.csv | no column 'status'
export-weights model --out w.npz | choose a .csv
weights a.npy none.npy | none.npy | no such file
weights a.npy b.csv | b.csv | both as arrays
weights a.npy wide.npy | wide.npy | shape
weights nan.npy a.npy | nan.npy | NaN
weights text.npy a.npy | text.npy | readable
weights none-at-all.npy a.npy | none-at-all.npy | no rows
weights a.npy c.npy --bound 0 | --bound
weights a.npy c.npy --penalty 3 | --penalty | kmm does not use it
weights a.npy c.npy --estimator ulsif --ridge 3 | --ridge | ulsif does not
weights a.npy c.npy --estimator isotonic --gamma 3 | --gamma | isotonic
weights a.npy c.npy --ridge -1 | --ridge
weights a.npy c.npy --gamma 0 | --gamma
weights a.npy c.npy --gamma wide | --gamma | median
weights a.npy c.npy --rank 0 | --rank
weights a.npy c.npy --out a.npy | --out | a.npy | read by this command
weights b.csv b.csv --drop no | --drop | 'no' | x
weights a.npy c.npy --out w.txt | --out | w.txt | .csv
weights a.npy c.npy --in-parts --out w.csv | --out: rows that are read in parts get weights as .npy
weights a.npy c.npy --in-parts --estimator chi2 | --estimator: chi2 needs all of TRAIN in memory
weights a.npy c.npy --in-parts --rank 0 | --rank: must be at least 1, not 0
report empty | none is finished
report missing | no such
report model --json no/folder/r.json | --json | no/folder
report model --out no/folder/r.html | --out | no/folder
methods rember | did you mean remember
data fetch mnist | fashion-mnist, cifar-10, cifar-100
"""
"""A call and words of its line, apart by bars."""


@pytest.fixture(scope="module")
def place(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs and files, some of which no verb can read."""
    folder = tmp_path_factory.mktemp("refusals") / "place"
    shutil.copytree(trained, folder)
    (folder / "empty").mkdir()
    texts = {
        "file": "",
        "ragged.csv": "x,label\n1\n",
        "narrow.csv": "size,colour\n1,red\n",
        "words.csv": "size,weight,colour\n1,1,red\nbig,1,red\n",
        "lost.csv": "size,weight,colour,status\n1,1,red,ok\n1,1,red,lost\n",
        "other.csv": "size,weight,colour,state\n1,1,red,ok\n",
        "text.npy": "not an array",
        "b.csv": "x\n1\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    np.savez(folder / "wide.npz", X=np.zeros((3, 9)))
    arrays = {"a": np.arange(9.0), "c": np.arange(9.0), "wide": np.ones((4, 3))}
    arrays |= {"nan": np.array([1.0, np.nan]), "none-at-all": np.empty(0)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_wrong_use_is_one_line_and_writes_nothing(case: str, place: Path, monkeypatch) -> None:
    monkeypatch.chdir(place)
    call, *words = case.split(" | ")
    if call.startswith("weights") and "--out" not in call:
        call += " --out w.npy"
    before = contents(place)
    line = refused(*shlex.split(call))
    assert line.startswith("diw: ")
    for word in words:
        assert word in line
    assert "Traceback" not in line
    assert contents(place) == before
