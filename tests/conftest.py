"""One thread everywhere: results must not depend on the machine's cores."""

import torch

torch.set_num_threads(1)
