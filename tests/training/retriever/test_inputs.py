"""Which tokens a retriever reads and which of them are scored, and that neighbours in a batch change no vector."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="NO TRANSFORMERS: retrievers are not trained here")
from tests.support.retriever_material import LATE, config_of, contents_of, pages, questions, retriever_of, seen
from vrag_ray.embedding.base import Content
from vrag_ray.training.retriever.config import LateConfig, RetrieverConfig, Scored
from vrag_ray.training.retriever.inputs import Inputs, LateForm, SingleForm
from vrag_ray.types import VragError

ALL = LATE.model_copy(update={"score": Scored.ALL})


def words(inputs: Inputs, tokenizer: object, row: int) -> str:
    """What the scored tokens of a row spell."""
    return str(getattr(tokenizer, "decode")(inputs.tensors["input_ids"][row][inputs.scored[row]]))  # noqa: B009


def test_the_body_is_the_querys_own_words_and_the_pages_visual_tokens(model: Path):
    _, form = retriever_of(config_of(model))
    assert isinstance(form, LateForm)
    queries = form.inputs(contents_of(4), queries=True)
    for row, text in enumerate(questions(4)):
        assert words(queries, form._tokenizer, row) == text
    shown = form.inputs(seen(3), queries=False)
    assert shown.scored.sum(dim=1).tolist() == [16, 16, 16]
    assert set(shown.tensors["input_ids"][shown.scored].tolist()) == {form._image_token_id}
    # What comes after the last of them is not computed.
    assert bool(shown.scored[:, -1].all())
    assert bool(queries.scored[:, -1].any())


def test_a_word_that_the_prompt_has_too_is_found_where_the_query_begins(model: Path):
    for late in (LATE, None):
        _, form = retriever_of(config_of(model, late=late))
        inputs = form.inputs([Content(text="user"), Content(text="a1 red assistant")], queries=True)
        tokenizer = form._tokenizer  # type: ignore[attr-defined]
        assert [words(inputs, tokenizer, row) for row in range(2)] == ["user", "a1 red assistant"]


def test_all_scores_what_is_no_padding(model: Path):
    _, form = retriever_of(config_of(model, late=ALL))
    inputs = form.inputs(contents_of(3), queries=True)
    assert torch.equal(inputs.scored, inputs.tensors["attention_mask"].bool())
    assert not bool(inputs.scored.all())


@pytest.mark.parametrize("late", [LATE, ALL], ids=["body", "all"])
def test_vectors_do_not_depend_on_their_neighbours(late: LateConfig, model: Path):
    same_alone_and_together(config_of(model, late=late))


def test_single_vectors_do_not_depend_on_their_neighbours(folder: Path):
    same_alone_and_together(config_of(folder, late=None))


def same_alone_and_together(config: RetrieverConfig) -> None:
    retriever, form = retriever_of(config)
    with torch.no_grad():
        for contents, queries in ((contents_of(4), True), (seen(3), False)):
            together = retriever(form.inputs(contents, queries=queries))[0]
            for row, content in enumerate(contents):
                alone = retriever(form.inputs([content], queries=queries))[0]
                whole, own = together.values[row][together.scored[row]], alone.values[0][alone.scored[0]]
                assert torch.allclose(whole, own, atol=1e-5), row
                assert torch.allclose(own.norm(dim=-1), torch.ones(len(own)), atol=1e-5)


def test_late_vectors_are_those_of_transformers_own_call(model: Path):
    """Independent of the form: the processor's own calls, and the model's own output."""
    retriever, form = retriever_of(config_of(model, late=ALL))
    processor = form._processor  # type: ignore[attr-defined]
    with torch.no_grad():
        mine = retriever(form.inputs(contents_of(3), queries=True))[0]
        theirs = retriever.model(**processor.process_queries(text=list(questions(3)))).embeddings
        assert torch.allclose(mine.values[mine.scored], theirs[mine.scored], atol=1e-6)


def test_a_single_vector_is_the_last_tokens_state(folder: Path):
    """By hand: the prompt as the authors' pages have it, and the state that it ends with."""
    retriever, form = retriever_of(config_of(folder, late=None))
    assert isinstance(form, SingleForm)
    user = f"<|im_start|>user\n{questions(1)[0]}<|im_end|>\n<|im_start|>assistant\n"
    system = "<|im_start|>system\nRetrieve images or text relevant to the user's query.<|im_end|>\n"
    prompt = f"{system}{user}" if "qwen3" in folder.name else f"{user}<|endoftext|>"
    ids = torch.tensor([form._tokenizer(prompt)["input_ids"]])
    with torch.no_grad():
        state = retriever.model.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0, -1]
        mine = retriever(form.inputs(contents_of(1), queries=True))[0]
    assert mine.values.shape == (1, 1, len(state))
    assert torch.allclose(mine.values[0, 0], state / state.norm(), atol=1e-6)


def test_what_a_model_does_not_take_is_refused(model: Path):
    _, form = retriever_of(config_of(model))
    with pytest.raises(VragError, match="passages of ColQwen2 are pictures, not words: 'a text'"):
        form.inputs([Content(text="a text")], queries=False)
    with pytest.raises(VragError, match="a text or a picture, not both"):
        form.inputs([Content(text="a text", picture=pages(1)[0])], queries=False)


def test_token_counts_are_those_of_the_inputs(folder: Path):
    late = None if "qwen3" in folder.name else ALL
    config: RetrieverConfig = config_of(folder, late=late)
    _, form = retriever_of(config)
    for content, queries in ((contents_of(3)[2], True), (seen(1)[0], False)):
        width = form.inputs([content], queries=queries).tensors["input_ids"].shape[1]
        assert 0 <= form.tokens(content) - width <= 2 + 80 * (late is None)
