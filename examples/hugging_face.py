"""A small BERT on sentences with wrong labels: Trainer against WeightedTrainer."""

import random
import sys
import tempfile

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments, set_seed

from diw.integrations.huggingface import WeightedTrainer

GOOD, BAD = ["fine", "great", "lovely"], ["dull", "poor", "awful"]
OTHER = ["the", "film", "book", "meal", "was", "very", "quite", "it", "had", "with"]
TOKENS = {word: number for number, word in enumerate(["[PAD]", *GOOD, *BAD, *OTHER])}
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}


def sentences(n: int, wrong: float, seed: int) -> list[dict]:
    """Tokens and a label, good or bad; the text is a column that the network does not take."""
    draw, rows = random.Random(seed), []
    for _ in range(n):
        label = draw.random() < 0.5
        words = draw.choices(GOOD if label else BAD, k=2) + draw.choices(
            OTHER, k=draw.randint(4, 7)
        )
        draw.shuffle(words)
        given, tokens = label ^ (draw.random() < wrong), [TOKENS[word] for word in words]
        rows.append({"input_ids": tokens, "text": " ".join(words), "label": int(given)})
    return rows


def collate(samples: list[dict]) -> dict:
    """Pad to the longest, as a tokenizer's collator does."""
    ids = pad_sequence([torch.tensor(s["input_ids"]) for s in samples], batch_first=True)
    labels = torch.tensor([sample["label"] for sample in samples])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": labels}


def main(quick: bool = False) -> None:
    """Train with and without weights."""
    data = {"train_dataset": sentences(64 if quick else 600, 0.3, seed=0)}
    data |= {"trusted_dataset": sentences(60, 0.0, seed=1), "data_collator": collate}
    test = sentences(500, 0.0, seed=2)
    options = {"num_train_epochs": 1 if quick else 30, "learning_rate": 2e-3, "report_to": []}
    for method in ("uniform", "diw"):
        set_seed(0)
        config = BertConfig(vocab_size=len(TOKENS), num_attention_heads=2, **SIZES)
        model = BertForSequenceClassification(config)
        with tempfile.TemporaryDirectory() as folder:
            args = TrainingArguments(folder, per_device_train_batch_size=64, **options)
            trainer = WeightedTrainer(model=model, args=args, method=method, **data)
            trainer.train()
            found = trainer.predict(test)
        right = found.predictions.argmax(1) == found.label_ids
        print(f"{method:8} test accuracy {right.mean():.3f}")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
