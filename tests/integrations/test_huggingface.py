"""Hugging Face's Trainer with a weighted loss: a small BERT, and small tests of everything else."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import SequentialSampler
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    TrainingArguments,
    set_seed,
)

import diw
from diw.errors import UsageError
from diw.integrations.huggingface import ImportanceWeightedTrainer
from diw.methods import make

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "hugging_face.py"))
sentences, collate, TOKENS, SIZES = (
    EXAMPLE[name] for name in ("sentences", "collate", "TOKENS", "SIZES")
)
pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*")


def bert(dropout=0.1):
    set_seed(0)
    drop = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return BertForSequenceClassification(
        BertConfig(vocab_size=len(TOKENS), num_attention_heads=2, **SIZES, **drop)
    )


def trainer(folder, model, method="diw", n=64, **options) -> ImportanceWeightedTrainer:
    more = {
        key: options.pop(key) for key in ("train_dataset", "objective_options") if key in options
    }
    values = {"per_device_train_batch_size": 32, "learning_rate": 2e-3, "report_to": [], **options}
    values |= {"disable_tqdm": True, "save_strategy": options.get("save_strategy", "no")}
    return ImportanceWeightedTrainer(
        model=model,
        args=TrainingArguments(str(folder), **values),
        method=method,
        trusted_dataset=sentences(60, 0.0, seed=1),
        data_collator=collate,
        **{"train_dataset": sentences(n, 0.3, seed=0), **more},
    )


def test_weights_beat_plain_training_on_wrong_labels(tmp_path) -> None:
    test = sentences(300, 0.0, seed=2)
    accuracy = {}
    for method in ("uniform", "diw"):
        options = {"num_train_epochs": 20, "per_device_train_batch_size": 64}
        ours = trainer(tmp_path, bert(), method, n=512, **options)
        ours.train()
        found = ours.predict(test)
        accuracy[method] = (found.predictions.argmax(1) == found.label_ids).mean()
    assert accuracy["diw"] > accuracy["uniform"] + 0.03
    assert accuracy["diw"] > 0.8


def test_it_is_the_plain_loop(tmp_path) -> None:
    """Two parts accumulated, epochs and steps counted, dropout off."""
    model = bert(dropout=0.0)
    ours = trainer(
        tmp_path, model, make("diw", {"warmup": 1}), num_train_epochs=3,
        gradient_accumulation_steps=2, per_device_train_batch_size=16, optim="sgd",
        lr_scheduler_type="constant", max_grad_norm=0.0, learning_rate=0.1,
    )  # fmt: skip
    # Its option of that meaning has changed its name since version 4.
    ours._get_train_sampler = lambda *_: SequentialSampler(range(64))
    ours.train()
    plain, rows = bert(dropout=0.0), sentences(64, 0.3, seed=0)
    objective = diw.Objective(plain, "diw", sentences(60, 0.0, seed=1), collate=collate)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for epoch in (1, 2, 3):
        objective.start_epoch(epoch)
        for start in range(0, 64, 32):
            for part in (start, start + 16):
                (objective(collate(rows[part : part + 16])).loss / 2).backward()
            optimizer.step()
            optimizer.zero_grad()
            objective.after_step()
    assert ours.objective.t == objective.t == 6
    assert ours.objective.epoch == 3
    assert ours.objective.task.horizon.steps == 6
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_samples_are_remembered_without_a_column_of_their_numbers(tmp_path) -> None:
    """The default method: the Trainer's batches say which samples they hold."""
    ours = trainer(tmp_path, bert(), "remember", num_train_epochs=2)
    [batch, *_] = ours.get_train_dataloader()
    assert sorted(batch) == ["attention_mask", "index", "input_ids", "labels"]
    numbers = [int(i) for batch in ours.get_train_dataloader() for i in batch["index"]]
    assert sorted(numbers) == list(range(64))
    ours.train()  # a DIWWarning that there is no index would fail here
    assert ours.objective.t == 4
    assert ours.objective.method.warmup_steps == 0  # a tenth of the steps, and not 200
    assert ours.evaluate(sentences(20, 0.0, seed=2))["eval_loss"] > 0


def test_a_checkpoint_resumes_the_weights(tmp_path) -> None:
    numbered = [{**row, "index": i} for i, row in enumerate(sentences(64, 0.3, seed=0))]

    def start(model):
        return trainer(
            tmp_path, model, make("diw", {"momentum": 0.5}), num_train_epochs=4,
            save_strategy="epoch", train_dataset=numbered,
        )  # fmt: skip

    whole = bert(dropout=0.0)
    first = start(whole)
    first.data_collator = indexed
    first.train()
    again = bert(dropout=0.0)
    second = start(again)
    second.data_collator = indexed
    second.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert second.objective.t == 8
    for a, b in zip(again.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    ours, theirs = second.objective.state_dict(), first.objective.state_dict()
    assert ours.pop("name") == theirs.pop("name")
    torch.testing.assert_close(ours, theirs)
    (tmp_path / "checkpoint-4" / "diw.pt").unlink()
    with pytest.raises(UsageError, match=r"^resume_from_checkpoint: .* was not written with w"):
        start(again).train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))


def indexed(samples):
    batch = collate(samples)
    if "index" in samples[0]:
        batch["index"] = torch.tensor([sample["index"] for sample in samples])
    return batch


def test_evaluation_is_plain_and_logs_have_the_weights(tmp_path) -> None:
    ours = trainer(tmp_path, bert(), num_train_epochs=2, logging_steps=1, bf16=True, use_cpu=True)
    ours.eval_dataset = [{**row, "index": 3} for row in sentences(40, 0.0, seed=3)]
    ours.data_collator = indexed
    ours.train()
    logged = [entry for entry in ours.state.log_history if "loss" in entry]
    assert len(logged) == 4
    assert 0 < logged[-1]["diw_ess"] <= 1
    loss = ours.evaluate()["eval_loss"]
    batch = collate(ours.eval_dataset)
    with torch.no_grad():
        expected = ours.model.eval()(**batch).loss
    assert np.isclose(loss, float(expected), rtol=1e-2)


def test_wrong_use_is_one_line(tmp_path) -> None:
    args = TrainingArguments(str(tmp_path), report_to=[])
    with pytest.raises(UsageError, match=r"^trusted_dataset: give a data set"):
        ImportanceWeightedTrainer(model=bert(), args=args)
    with pytest.raises(UsageError, match=r"^compute_loss_func: the objective computes the loss"):
        ImportanceWeightedTrainer(
            model=bert(), args=args, trusted_dataset=[], compute_loss_func=nn.functional.mse_loss
        )


@pytest.mark.parametrize("wrong", [lambda row: 0, lambda row: 10**12 + row, lambda row: row / 2])
def test_a_column_index_that_does_not_number_the_samples_is_refused(tmp_path, wrong) -> None:
    rows = [{**row, "index": wrong(i)} for i, row in enumerate(sentences(64, 0.3, seed=0))]
    with pytest.raises(UsageError, match=r"^train_dataset: its column 'index' does not number"):
        trainer(tmp_path, bert(), "remember", train_dataset=rows).train()


def test_trusted_index_beyond_the_training_set_are_refused(tmp_path) -> None:
    options = {"trusted_index": torch.arange(5, 65)}
    ours = trainer(tmp_path, bert(), "remember", objective_options=options)
    with pytest.raises(UsageError, match=r"^trusted_index: 64 is no row of train_dataset, .*0..63"):
        ours.train()


def test_without_the_extra_one_line_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "diw.integrations.huggingface")
    with pytest.raises(
        ImportError, match=r"^transformers is not installed: pip install 'diw\[hf\]"
    ):
        import diw.integrations.huggingface  # noqa: F401
