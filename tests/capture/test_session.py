"""A model is borrowed: put back whatever happens, never shared, and deaf to everybody else meanwhile."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

from attnflow import capture
from attnflow.capture import _session, _stream
from attnflow.errors import CaptureError
from tests.capture.fingerprint import fingerprint
from tests.capture.zoo import build, keywords, one_of

NAMES = ("BERT", "DeBERTa-v2", "gpt-oss", "BART")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("edges", ["attention", "gradient"])
def test_an_exception_in_the_middle_leaves_no_trace(name: str, error: type[BaseException], edges: str) -> None:
    model, arguments = build(name, training=True), keywords(name)
    layer = [module for module in model.modules() if isinstance(module, torch.nn.LayerNorm)][-1:]
    target = layer[0] if layer else list(model.modules())[-1]

    def broken(*_: Any) -> None:
        raise error("in the middle")

    handle = target.register_forward_hook(broken)
    before = fingerprint(model)
    with pytest.raises(error):
        capture.graph(model, arguments, edges=edges)
    assert fingerprint(model) == before
    handle.remove()
    capture.graph(model, arguments)  # it is free again


def test_a_function_that_fails_while_heads_are_mixed_leaves_no_trace() -> None:
    model = build("BERT")
    before = fingerprint(model)
    with pytest.raises(ZeroDivisionError):
        capture.graph(model, keywords("BERT"), heads=lambda heads: 1 / 0)
    assert fingerprint(model) == before


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_the_implementation_chosen_by_the_user_comes_back(implementation: str) -> None:
    model = build("Llama")
    model.set_attn_implementation(implementation)
    graph = capture.graph(model, one_of(keywords("Llama"), 0))
    assert model.config._attn_implementation == implementation
    other = build("Llama")
    np.testing.assert_allclose(graph.levels, capture.graph(other, one_of(keywords("Llama"), 0)).levels, atol=1e-6)


def test_a_config_that_asks_for_attentions_is_no_hindrance() -> None:
    model = build("BERT")
    expected = capture.graph(model, one_of(keywords("BERT"), 0))
    model.set_attn_implementation("eager")
    model.config.output_attentions = True
    model.config.return_dict = False
    before = fingerprint(model)
    np.testing.assert_allclose(capture.graph(model, one_of(keywords("BERT"), 0)).levels, expected.levels, atol=1e-6)
    assert fingerprint(model) == before


def test_two_models_in_two_threads_do_not_meet() -> None:
    names = ("Llama", "BERT")
    expected = {name: capture.graph(build(name), keywords(name)) for name in names}
    models = {name: build(name) for name in names}
    found: dict[str, list[Any]] = {name: [] for name in names}
    gate = threading.Barrier(2)

    def work(name: str) -> None:
        gate.wait()
        for _ in range(10):
            found[name].append(capture.graph(models[name], keywords(name)))

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        assert len(found[name]) == 10
        for graphs in found[name]:
            for graph, wanted in zip(graphs, expected[name], strict=True):
                np.testing.assert_allclose(graph.levels, wanted.levels, atol=1e-6)


@pytest.mark.parametrize("sharing", ["the same model", "a part of it", "another model with its config"])
def test_the_second_capture_waits(sharing: str) -> None:
    model = build("BERT")
    other = {
        "the same model": lambda: model,
        "a part of it": lambda: model.bert,
        "another model with its config": lambda: type(model)(model.config).eval(),
    }[sharing]()
    running, overlaps, lock = [0], [0], threading.Lock()

    def watched(*_: Any) -> None:
        with lock:
            running[0] += 1
            overlaps[0] += running[0] > 1
        time.sleep(0.05)
        with lock:
            running[0] -= 1

    handles = [
        one.register_forward_hook(watched)
        for one in {id(m): m for m in (model.bert, getattr(other, "bert", other))}.values()
    ]
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda m=m: results.append(capture.graph(m, one_of(keywords("BERT"), 0))))
        for m in (model, other, model)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for handle in handles:
        handle.remove()
    assert len(results) == 3
    assert overlaps[0] == 0


def test_a_capture_inside_a_capture_of_the_same_model_is_refused() -> None:
    model = build("BERT")

    def heads(weights: Any) -> Any:
        capture.graph(model, one_of(keywords("BERT"), 0))

    with pytest.raises(CaptureError, match="captured already, by the same thread"):
        capture.graph(model, keywords("BERT"), heads=heads)
    capture.graph(model, keywords("BERT"))


@pytest.mark.parametrize("shared", ["the model", "the config"])
def test_a_plain_run_of_another_thread_is_answered_and_not_recorded(shared: str) -> None:
    model = build("Gemma 2")
    bystander = model if shared == "the model" else type(model)(model.config).eval()
    arguments = one_of(keywords("Gemma 2"), 0)
    with torch.no_grad():
        expected = bystander(**arguments)[0]
    reader = _stream.Stream()
    found: list[torch.Tensor] = []

    def run() -> None:
        with torch.no_grad():
            found.append(bystander(**arguments)[0])

    with _session.borrowed(model), _session.reading(model, reader):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert reader.seen == []
    torch.testing.assert_close(found[0], expected, atol=1e-4, rtol=1e-4)


def test_nothing_global_changes_for_other_models() -> None:
    bystander = build("BERT", seed=1)
    arguments = one_of(keywords("BERT"), 0)
    with torch.no_grad():
        before = bystander(**arguments)[0]
    captured = build("BERT")
    with _session.borrowed(captured), _session.reading(captured, _stream.Stream()), torch.no_grad():
        torch.testing.assert_close(bystander(**arguments)[0], before, rtol=0, atol=0)
        assert bystander.config._attn_implementation == "sdpa"


def test_nested_configs_get_their_own_attention_back() -> None:
    model = build("T5")
    model.encoder.config._attn_implementation_internal = "eager"
    capture.graph(model, keywords("T5"))
    assert model.encoder.config._attn_implementation == "eager"
    assert model.decoder.config._attn_implementation == "sdpa"


def test_compiled_and_wrapped_models_are_unwrapped() -> None:
    model = build("BERT")
    arguments = one_of(keywords("BERT"), 0)
    expected = capture.graph(model, arguments).levels
    wrapped = torch.nn.DataParallel(copy.deepcopy(model))
    np.testing.assert_allclose(capture.graph(wrapped, arguments).levels, expected, atol=1e-6)


PRECISIONS = [
    (name, dtype) for name in ("BERT", "gpt-oss", "T5") for dtype in (torch.float64, torch.bfloat16, torch.float16)
]


@pytest.mark.parametrize(
    ("name", "dtype"), [pair for pair in PRECISIONS if pair != ("gpt-oss", torch.float64)]
)  # torch has no experts in it
def test_every_precision(name: str, dtype: torch.dtype) -> None:
    arguments = one_of(keywords(name), 0)
    wanted = capture.graph(build(name), arguments)
    model = build(name).to(dtype)
    graph = capture.graph(model, arguments)
    tolerance = {torch.float64: 1e-4, torch.float16: 0.02, torch.bfloat16: 0.12}[dtype]
    np.testing.assert_allclose(graph.levels, wanted.levels, atol=tolerance)
    assert next(model.parameters()).dtype == dtype


def test_transformers_is_new_enough_for_what_is_relied_on() -> None:
    assert hasattr(tf.BertConfig(), "_attn_implementation_internal")
    assert hasattr(tf.PreTrainedModel, "_can_set_attn_implementation")
