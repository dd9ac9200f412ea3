"""Supervised fine-tuning: the model learns the replies of recorded runs, on the agent's tokens only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vrag_ray.training.config import SFTConfig
from vrag_ray.training.rollout.rollout import order
from vrag_ray.training.run.storage import RunStorage, local_copy
from vrag_ray.training.sft_replies import Replies, read_replies
from vrag_ray.training.trainer.batch import collate, parts
from vrag_ray.training.trainer.dummy_forward import dummy_forward, passes_behind
from vrag_ray.training.trainer.step_timer import StepTimer
from vrag_ray.training.trajectory import Call
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from vrag_ray.training.run.folder import RunFolder
    from vrag_ray.training.trainer.image_processing import Pixels
    from vrag_ray.training.trainer.worker import Worker

LOGGED_EVERY = 10
HELD_OUT_LOSS = "validation/loss"
LOWEST = "lowest"


def train_loop(values: Mapping[str, object]) -> None:
    """What Ray Train runs in each worker; ``values`` are those of an ``SFTConfig``."""
    config = SFTConfig.model_validate(values)
    with local_copy(config.model.path) as source:
        _train(config, str(source))


def _train(config: SFTConfig, source: str) -> None:
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat
    from vrag_ray.training.run.folder import RunFolder
    from vrag_ray.training.trainer.image_processing import Pixels
    from vrag_ray.training.trainer.worker import start_worker

    # Everything that is read comes first: a long model need not be loaded for data that cannot be used.
    replies = replies_of(config, source)
    pixels = Pixels(ChatFormat(source).processor)
    calls = replies.calls
    steps = config.epochs * -(-len(calls) // config.batch)
    worker = start_worker(config, source, steps, seed=config.seed)
    storage = RunStorage(config.storage, config.name)
    log = RunFolder(storage, config, config.name, config.made_for) if worker.ranks.rank == 0 else None
    if log is not None:
        log.rewind(worker.done)
        log.report(worker.done, steps, str(replies))
    timer = StepTimer()
    while worker.done < steps:
        if config.validation_every and worker.done % config.validation_every == 0:
            validate(worker, pixels, replies, storage, steps, log)
        batch = batch_of(calls, worker.done, config.batch, config.seed)
        metrics = _step(worker, pixels, worker.ranks.share(batch), config.model.tokens_per_batch)
        done = worker.done
        last = done == steps
        if last or done % config.checkpoint_every == 0:
            with timer.phase("checkpoint"):
                worker.report({"step": done, "loss": metrics["sft/loss"]}, checkpoint=True)
        if log is not None and (last or done % LOGGED_EVERY == 0):
            log.log(done, metrics | timer.elapsed())
            log.report(done, steps, f"loss {metrics['sft/loss']:.4f}, {metrics['sft/exact']:.3f} of tokens predicted")
    if config.validation_every:
        validate(worker, pixels, replies, storage, steps, log)
    worker.export(storage)
    if log is not None:
        if (lowest := log.lowest(HELD_OUT_LOSS)) is not None:
            where = f", whose model is {storage.uri(LOWEST)}" if lowest[1] else ", which is the model before training"
            log.note(
                f"held-out loss: lowest after step {lowest[1]} ({lowest[0]:.4f}){where}; final/ is after step {steps}"
            )
        log.close()


def validate(
    worker: Worker, pixels: Pixels, replies: Replies, storage: RunStorage, steps: int, log: RunFolder | None
) -> None:
    """Measure the loss of what is held out with the weights as they are, and leave the model of the lowest so far in
    the run's ``lowest/``: its checkpoint may be replaced, and need not exist. All ranks call it."""
    loss, exact, _ = held_out_likelihood(worker, pixels, replies.held_out)
    (before, *_) = worker.ranks.gathered(log.lowest(HELD_OUT_LOSS) if log is not None else None)
    if worker.done and (before is None or loss < before[0]):
        worker.export(storage, LOWEST)
    if log is not None:
        log.log(worker.done, {HELD_OUT_LOSS: loss, "validation/exact": exact})
        log.report(worker.done, steps, f"held-out loss {loss:.4f}, {exact:.3f} of tokens predicted")


def replies_of(config: SFTConfig, source: str) -> Replies:
    """What is learnt, in the tokens of the model at ``source``. Raises VragError for what cannot be read or used."""
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat
    from vrag_ray.training.trainer.image_processing import Pixels

    limit = longest_call(config, source)
    form = ChatFormat(source)
    expand_image_tokens = Pixels(form.processor).expand_image_tokens
    with local_copy(config.trajectories) as files:
        replies = read_replies(files, form, expand_image_tokens, limit, config.validation_share)
    if not config.validation:
        return replies
    with local_copy(config.validation) as files:
        return replace(replies, held_out=read_replies(files, form, expand_image_tokens, limit).calls)


def longest_call(config: SFTConfig, source: str) -> int:
    """How many tokens a prompt and its reply may have. Raises VragError for more than the model has positions for."""
    from transformers import AutoConfig

    positions = int(AutoConfig.from_pretrained(source).get_text_config().max_position_embeddings)
    if config.max_length is not None and config.max_length > positions:
        raise VragError(f"max_length is {config.max_length}, but {config.model.path} has {positions} positions")
    return config.max_length or positions


def batch_of(calls: Sequence[Call], step: int, size: int, seed: int) -> list[Call]:
    """The calls of step ``step`` (from 0): every epoch has all calls once, in an order of its own."""
    per_epoch = -(-len(calls) // size)
    epoch, within = divmod(step, per_epoch)
    places = order(len(calls), f"sft/{seed}/{epoch}")[within * size : (within + 1) * size]
    return [calls[place] for place in places]


def _step(worker: Worker, pixels: Pixels, own: Sequence[Call], budget: int) -> dict[str, float]:
    """One optimiser step on the mean negative log-likelihood of all tokens of all ranks."""
    loss, exact, tokens = _likelihood(worker, pixels, own, budget)
    norm = worker.optimizer.step()
    return {
        "sft/loss": loss,
        "sft/exact": exact,
        "sft/grad_norm": norm,
        "sft/lr": worker.optimizer.lr,
        "sft/tokens": tokens,
    }


def held_out_likelihood(worker: Worker, pixels: Pixels, calls: Sequence[Call]) -> tuple[float, float, float]:
    """As ``_likelihood``, of all of ``calls`` and without gradient. All ranks call it with the same."""
    import torch

    with torch.no_grad():
        return _likelihood(worker, pixels, worker.ranks.share(calls), worker.config.model.tokens_per_batch)


def _likelihood(worker: Worker, pixels: Pixels, own: Sequence[Call], budget: int) -> tuple[float, float, float]:
    """The mean negative log-likelihood of all tokens of all ranks, the share of tokens more likely than not, and how
    many tokens there are. With gradients on, those of the mean are added up."""
    import torch

    (tokens,) = worker.ranks.sums([sum(len(call.completion_ids) for call in own)])
    total = sure = 0.0
    passes = list(parts([[call.tokens] for call in own], budget))
    behind = passes_behind(worker.scorer, worker.ranks, len(passes))
    for part in passes:
        batch = collate([own[number] for number in part], pixels, worker.pad_id)
        logp = worker.scorer(batch.to(worker.scorer.device)).logp
        if logp.requires_grad:
            torch.autograd.backward(-logp.sum() / tokens)
        total -= float(logp.sum())
        sure += float((logp > -0.6931).sum())
    dummy_forward(worker.scorer, pixels, worker.pad_id, behind)
    totals = worker.ranks.sums((total, sure))
    return totals[0] / tokens, totals[1] / tokens, tokens
