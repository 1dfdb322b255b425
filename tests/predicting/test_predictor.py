import torch
from torch import nn

from diw.data import Encoding
from diw.data.encoding import NumberColumn, TableRows
from diw.predicting import Predictor
from tests.problems import CountedInputs

ENCODING = Encoding(("a", "b"), TableRows((NumberColumn("0", 0, 1), NumberColumn("1", 0, 1))))


def test_predictions_read_each_row_once_and_no_batch_ahead() -> None:
    inputs = CountedInputs(1000)
    torch.manual_seed(0)
    model = nn.Linear(2, 2).eval()
    batches = Predictor(model, ENCODING).probabilities(inputs, 64)
    assert inputs.asked == []
    first = next(batches)
    assert inputs.asked == [64]
    rest = list(batches)
    assert inputs.asked == [64] * 15 + [40]
    with torch.no_grad():
        expected = model(CountedInputs(1000).take(torch.arange(1000))).softmax(1)
    got = torch.cat([torch.from_numpy(batch) for batch in (first, *rest)])
    torch.testing.assert_close(got, expected)
