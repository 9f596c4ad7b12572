"""What maps are compared with: chance, the last layer alone, and importances that do not come from attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnflow import capture
from attnflow.errors import InvalidArgument, suggest
from attnflow.study._subject import Subject
from attnflow.study._ways import Floats, Way

Baseline = Callable[[Subject, str, int], list[Floats]]  # (subject, replacement, seed) → scores of each input's features

STEPS = 20  # of the path of integrated gradients
DRAWS = 60  # of SHAP's sets of tokens, for each input


def random(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """Chance: every order of the features is as likely."""
    rng = np.random.default_rng(seed)
    return [rng.random(len(features.groups)) for features in subject.features]


def last_layer(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """Raw attention of the last layer, heads averaged: what is drawn most often."""
    way = Way("raw", residual=None)
    return subject.maps([way])[way.name]


def occlusion(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """Each feature taken away alone: by how much the target falls, with the replacement that is measured with."""
    found = []
    for number, features in enumerate(subject.features):
        alone = ~np.eye(len(features.groups), dtype=np.bool_)
        whole = subject.ablations(replace)[number].value
        found.append(whole - subject.predict(replace, number)(alone))
    return found


def gradient(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """The length of the target's gradient by each token's vector."""
    return _reference(subject, capture.input_gradient, size=True, measure="l2")


def gradient_x_input(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """The gradient times the token's vector, signed."""
    return _reference(subject, capture.input_gradient, size=False, measure="gradient_x_input")


def integrated_gradients(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """Gradients integrated from the input without content (Sundararajan et al. 2017), by Captum."""
    return _reference(subject, capture.captum, size=False, method="IntegratedGradients", n_steps=STEPS)


def shap(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """Shapley values by a weighted regression over sets of tokens (KernelSHAP, Lundberg & Lee 2017), by Captum."""
    options = {"n_samples": DRAWS, "perturbations_per_eval": 16}
    return _reference(subject, capture.captum, size=False, method="KernelShap", seed=seed, **options)


def grad_cam(subject: Subject, replace: str, seed: int) -> list[Floats]:
    """Grad-CAM over the vectors that enter the last block."""
    return _reference(subject, capture.grad_cam, size=False)


BASELINES: dict[str, Baseline] = {
    "random": random,
    "last layer": last_layer,
    "occlusion": occlusion,
    "gradient": gradient,
    "gradient x input": gradient_x_input,
    "integrated gradients": integrated_gradients,
    "shap": shap,
    "grad-cam": grad_cam,
}
BY_REPLACEMENT = ("occlusion",)  # the others do not depend on it


def baselines_called(names: Sequence[str]) -> dict[str, Baseline]:
    """Baselines by their names."""
    for name in names:
        if name not in BASELINES:
            raise InvalidArgument(f"unknown baseline {name!r}." + suggest(name, BASELINES))
    return {name: BASELINES[name] for name in names}


def _reference(subject: Subject, function: Any, *, size: bool, **options: Any) -> list[Floats]:
    made = function(subject.model, list(subject.inputs), **subject.asked, target=list(subject.targets), **options)
    return subject.of_references(made, size=size)
