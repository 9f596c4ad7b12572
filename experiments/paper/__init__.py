"""The tables and figures of Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers", measured again.

`python -m experiments.paper` runs all of it and writes `experiments/results/paper/`.
"""
