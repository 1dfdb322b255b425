"""A Hugging Face Trainer
======================

``ImportanceWeightedTrainer`` is a ``Trainer`` that also takes trusted data. Here a small BERT
learns from sentences of which a third have the wrong label. Nothing comes from the hub.
"""

import random
import sys
import tempfile

import matplotlib.pyplot as plt
import torch
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments, set_seed

from diw.integrations.huggingface import ImportanceWeightedTrainer

QUICK = "--quick" in sys.argv
GOOD, BAD = ["fine", "great", "lovely"], ["dull", "poor", "awful"]
OTHER = ["the", "film", "book", "meal", "was", "very", "quite", "it", "had", "with"]
TOKENS = {word: number for number, word in enumerate(["[PAD]", *GOOD, *BAD, *OTHER])}
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}


def sentences(n: int, wrong: float, seed: int) -> list[dict]:
    """Tokens and a label, good or bad."""
    draw, rows = random.Random(seed), []
    for _ in range(n):
        label = draw.random() < 0.5
        words = draw.choices(GOOD if label else BAD, k=2) + draw.choices(OTHER, k=6)
        ids = [TOKENS[word] for word in draw.sample(words, len(words))]
        rows.append({"input_ids": ids, "label": int(label ^ (draw.random() < wrong))})
    return rows


def collate(samples: list[dict]) -> dict:
    """All have the same length; a tokenizer's collator would pad them."""
    ids = torch.tensor([sample["input_ids"] for sample in samples])
    labels = torch.tensor([sample["label"] for sample in samples])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


trusted, test = sentences(60, 0.0, seed=1), sentences(300, 0.0, seed=2)
train = trusted + sentences(64 if QUICK else 500, 0.33, seed=0)  # both are trained on
data = {"train_dataset": train, "trusted_dataset": trusted, "data_collator": collate}
options = {"num_train_epochs": 1 if QUICK else 20, "learning_rate": 2e-3, "report_to": []}
options |= {"disable_tqdm": True, "logging_strategy": "no", "save_strategy": "no"}
for method in ("uniform", "diw"):
    set_seed(0)
    config = BertConfig(vocab_size=len(TOKENS), num_attention_heads=2, **SIZES)
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(folder, per_device_train_batch_size=64, **options)
        trainer = ImportanceWeightedTrainer(model=model, args=args, method=method, **data)
        trainer.train()
        found = trainer.predict(test)
    right = (found.predictions.argmax(1) == found.label_ids).mean()
    plt.bar(method, right)
    print(f"{method:8} test accuracy {right:.3f}")
plt.ylabel("test accuracy"), plt.show()
