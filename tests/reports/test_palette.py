from diw.reports.palette import COLOURS, looks, translucent


def test_looks_differ_for_every_method_of_the_paper() -> None:
    labels = [f"method {place}" for place in range(14)]
    assert len(set(looks(labels).values())) == 14
    assert looks(reversed(labels)) == looks(labels)
    assert translucent(COLOURS[0], 0.5) == "rgba(0,114,178,0.5)"
