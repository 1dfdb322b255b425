"""Predicting with the network of a finished run: predictions, files of them, and scores."""

from diw.predicting.files import check_format, write_predictions
from diw.predicting.predictor import Predictor, write_encoding
from diw.predicting.scores import Scores

__all__ = ["Predictor", "Scores", "check_format", "write_encoding", "write_predictions"]
