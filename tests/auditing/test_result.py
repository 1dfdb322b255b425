import numpy as np

from diw.auditing import Audit


def test_trusted_labels_that_another_classifier_does_not_believe_are_doubtful() -> None:
    n = 6
    found = Audit(
        labels=np.zeros(n, np.int64),
        suggested=np.ones(n, np.int64),
        probability=np.full(n, 0.6),
        score=np.linspace(0, 1, n),
        weight=np.ones(n),
        trusted=np.array([False, True, True, True, True, False]),
        classes=("no", "yes"),
        opinion=np.array([0.001, 0.04, 0.9, 0.01, 0.06, 0.5]),
    )
    assert found.doubtful.tolist() == [3, 1]
    header, *lines = found.to_csv(doubtful=True).splitlines()
    assert header.startswith("place,file,row,label,suggested")
    assert [line.split(",")[0] for line in lines] == ["3", "1"]
    assert found.order.tolist() == [5, 0]  # trusted samples are no suspects
