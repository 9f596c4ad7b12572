"""What the paper printed: mean and standard deviation for each layer.

Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020 (arXiv 2005.00928v2).
"""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """A cell of the paper."""

    mean: float
    sd: float


Row = tuple[Printed, ...]


def _row(text: str) -> Row:
    return tuple(Printed(*map(float, cell.split("±"))) for cell in text.split())


# Tables 1 and 2: Spearman with blank-out and with input gradients; verb number, 2,000 test sentences, layers 1 to 6.
TABLE_1 = {
    "raw": _row("0.69±0.27 0.10±0.43 -0.11±0.49 -0.09±0.52 0.20±0.45 0.29±0.39"),
    "rollout": _row("0.32±0.26 0.38±0.27 0.51±0.26 0.62±0.26 0.70±0.25 0.71±0.24"),
    "flow": _row("0.32±0.26 0.44±0.29 0.70±0.25 0.70±0.22 0.71±0.22 0.70±0.22"),
}
TABLE_2 = {
    "raw": _row("0.53±0.33 0.16±0.38 -0.06±0.42 0.00±0.47 0.24±0.40 0.46±0.35"),
    "rollout": _row("0.22±0.31 0.27±0.32 0.39±0.32 0.47±0.32 0.53±0.32 0.54±0.31"),
    "flow": _row("0.22±0.31 0.31±0.34 0.54±0.32 0.61±0.28 0.60±0.28 0.61±0.28"),
}
# Table 3: Spearman with input gradients; DistilBERT fine-tuned on SST-2, 100 test sentences, layers 1, 3, 5 and 6.
TABLE_3 = {
    "raw": _row("0.12±0.21 0.09±0.21 0.08±0.20 0.09±0.21"),
    "rollout": _row("0.11±0.19 0.12±0.21 0.13±0.21 0.13±0.20"),
    "flow": _row("0.11±0.19 0.11±0.21 0.12±0.22 0.14±0.21"),
}
TABLE_3_LAYERS = (1, 3, 5, 6)
ACCURACY = 0.96

PROVENANCE = (
    "The paper's figures were taken from a transcription of its arXiv version 2 in a public repository "
    "(viktor-shcherb/msc_thesis, references/2020-07-quantifying-attention-flow); the PDF itself could not be opened from "
    "where this was made. A second, separately made transcription of the PDF in another public repository has the same figures in every "
    "cell of Tables 1 to 3, and Table 3's raw and rollout rows equal, to the printed digits, the authors' committed log "
    "`correlations_bert_sst_max`."
)
