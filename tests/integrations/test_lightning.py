"""Lightning: the same training as a plain loop, with everything around it."""

import sys
import warnings

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diw
from diw.errors import UsageError
from diw.methods import make
from tests.networks import noisy_network, samples

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint

    from diw.integrations.lightning import ImportanceWeighting

pytestmark = pytest.mark.filterwarnings("ignore:::lightning", "ignore:.*num_workers.*")
TRUSTED = samples(20, seed=1)
METHOD = {"momentum": 0.5}


def network():
    """Batch norm, but no dropout: Lightning draws other random numbers than a plain loop."""
    model = noisy_network()
    model[3].p = 0.0
    return model


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = network()
        self.seen = []

    def forward(self, inputs):
        return self.net(inputs)

    def training_step(self, batch, batch_idx):
        result = self.objective(batch)
        self.seen.append(result.weights.train)
        return result.loss

    def validation_step(self, batch, batch_idx):
        self.log("validation", self.objective(batch).loss)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def loader():
    inputs, targets = samples(48)
    return DataLoader(diw.IndexedDataset(TensorDataset(inputs, targets)), batch_size=16)


def weighting(**options):
    return ImportanceWeighting(
        TRUSTED, make("diw", METHOD), network="net", trusted_batch_size=8, **options
    )


def trainer(folder, *callbacks, epochs=4, **options):
    return pl.Trainer(
        max_epochs=epochs,
        callbacks=list(callbacks),
        default_root_dir=folder,
        accelerator="cpu",
        **{"logger": False, "enable_checkpointing": False, **options},
        enable_progress_bar=False,
        enable_model_summary=False,
    )


@pytest.mark.parametrize("accumulate", [1, 3])
def test_it_is_the_plain_loop(tmp_path, accumulate) -> None:
    model, ours = Classifier(), weighting()
    trainer(tmp_path, ours, accumulate_grad_batches=accumulate).fit(model, loader())
    plain = network()
    objective = diw.Objective(plain, make("diw", METHOD), TRUSTED, trusted_batch_size=8)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
    for epoch in range(1, 5):
        objective.start_epoch(epoch)
        for place, batch in enumerate(loader()):
            (objective(batch).loss / accumulate).backward()
            if (place + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                objective.after_step()
    assert ours.objective.state_dict()["t"] == objective.t == 12 // accumulate
    assert ours.objective.task.horizon.steps == 12 // accumulate
    assert ours.objective.epoch == 4
    for a, b in zip(model.net.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_second_module_is_trained_as_the_first_one_was(tmp_path) -> None:
    ours, models = weighting(), [Classifier(), Classifier()]
    before = [value.clone() for value in models[1].parameters()]
    for model in models:
        trainer(tmp_path, ours, epochs=2).fit(model, loader())
    assert not any(map(torch.equal, before, models[1].parameters()))
    assert all(map(torch.equal, *(model.parameters() for model in models)))
    assert models[0].objective is not models[1].objective is ours.objective
    trainer(tmp_path, ours, epochs=1).fit(models[1], loader())  # again: it goes on
    assert models[1].objective is ours.objective
    assert ours.objective.t == 9


def test_a_checkpoint_resumes_weights_and_trusted_stream(tmp_path) -> None:
    whole = Classifier()
    keep = ModelCheckpoint(dirpath=tmp_path, filename="{epoch}", save_top_k=-1)
    trainer(tmp_path, weighting(), keep, enable_checkpointing=True).fit(whole, loader())
    model, again = Classifier(), weighting()
    trainer(tmp_path, again).fit(model, loader(), ckpt_path=tmp_path / "epoch=1.ckpt")
    assert len(model.seen) == 6
    assert again.objective.state_dict()["t"] == 12
    assert all(map(torch.equal, model.seen, whole.seen[6:]))
    assert all(map(torch.equal, model.parameters(), whole.parameters()))


def test_precision_validation_and_logs(tmp_path) -> None:
    model = Classifier()
    fit = trainer(tmp_path, weighting(), epochs=2, precision="bf16-mixed")
    fit.fit(model, loader(), loader())
    assert {"diw/ess", "diw/share_zero", "diw/weight_max", "validation"} <= set(
        fit.callback_metrics
    )
    assert 0 < fit.callback_metrics["diw/ess"] <= 1
    assert model.seen[-1].dtype == torch.float32
    quiet = trainer(tmp_path, weighting(log=None), epochs=1)
    quiet.fit(Classifier(), loader())
    assert not any(name.startswith("diw") for name in quiet.callback_metrics)


class Forgetful(Classifier):
    def training_step(self, batch, batch_idx):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])


class Headless(pl.LightningModule):
    pass


@pytest.mark.parametrize(
    ("model", "network", "message"),
    [
        (Forgetful, "net", r"^training_step: it did not call the objective"),
        (Classifier, "nets", r"^network: there is no submodule 'nets'; there are net$"),
        (Headless, None, r"^network: the module has no forward of its own"),
    ],
)
def test_wrong_use_is_one_line(tmp_path, model, network, message) -> None:
    callback = ImportanceWeighting(TRUSTED, network=network)
    if model is Headless:
        with pytest.raises(UsageError, match=message):
            callback.setup(None, model(), "fit")
        return
    with pytest.raises(UsageError, match=message):
        trainer(tmp_path, callback).fit(model(), loader())


def test_a_method_given_by_name_suits_itself_to_the_training(tmp_path) -> None:
    ours = ImportanceWeighting(TRUSTED, "remember", network="net")
    trainer(tmp_path, ours, epochs=4).fit(Classifier(), loader())
    assert ours.objective.method.warmup_steps == ours.objective.t // 10


def test_there_is_no_objective_before_the_fit() -> None:
    with pytest.raises(UsageError, match="no objective before"):
        _ = weighting().objective


def test_without_the_extra_one_line_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.delitem(sys.modules, "diw.integrations.lightning")
    with pytest.raises(ImportError, match=r"^lightning is not installed: pip install 'diw\[light"):
        import diw.integrations.lightning  # noqa: F401
