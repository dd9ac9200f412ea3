"""Has a prompt with pictures refused by a colocated engine, then the same pictures seen, also after vLLM forgot them,
prompts rendered and kept, replies put into words by vLLM and by the engine itself, talks held one by one and all at
once, the trainer's turn on the device, and an engine that fails; prints what was said as JSON.

Usage: run_colocated.py MODEL_FOLDER. A program of its own, so that vLLM's threads, signal handlers and log settings
stay out of the test process.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

import torch
from transformers import AutoModelForImageTextToText, AutoTokenizer
from vllm import RequestOutput

from tests.support.tiny_vllm import png
from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.policies.llm.chat_model import ModelLostError, Sampling, TokenDelta, TokenRequest
from vrag_ray.training.config import EngineConfig
from vrag_ray.training.rollout import colocated
from vrag_ray.training.rollout.colocated import ColocatedEngine
from vrag_ray.training.rollout.rendered_prompts import RenderedPrompts
from vrag_ray.types import Completion, VragError

LONGEST = 256
TALKS, TURNS = 12, 3
"""Six times as many at once as the engine has places."""


async def main(model: str) -> None:
    config = EngineConfig(max_model_len=LONGEST, max_num_seqs=2, max_batched_tokens=LONGEST, max_images=2)
    engine = ColocatedEngine(model, config, temperature=1.0, distributed=False, seed=0)
    ids = AutoTokenizer.from_pretrained(model).get_vocab()
    picture = [ids[f"<|{name}|>"] for name in ("vision_start", "image_pad", "vision_end")]
    sampling = Sampling(max_tokens=4, temperature=0.0)
    prompt = TokenRequest((*picture, *picture, 50), (png((1, 200, 3)), png((250, 4, 5))), sampling)
    replies: list[list[float]] = []

    async def reply(request: TokenRequest) -> None:
        async for piece in engine.generate(request):
            if isinstance(piece, TokenDelta):
                replies.append(list(piece.logprobs))

    async def words(seed: int, stop: tuple[str, ...]) -> str:
        spoken = Sampling(max_tokens=48, temperature=1.0, seed=seed, stop=stop)
        pieces = [piece async for piece in engine.generate(TokenRequest((50,), (), spoken))]
        assert isinstance(pieces[-1], Completion)
        return pieces[-1].text

    async def talk(number: int) -> list[int]:
        """Each turn is sent with the reply to the last one."""
        tokens: tuple[int, ...] = (50,)
        for turn in range(TURNS):
            drawn = Sampling(max_tokens=4 + number, temperature=1.0, seed=100 * number + turn)
            async with aclosing(engine.generate(TokenRequest(tokens, (), drawn))) as pieces:
                done = [piece async for piece in pieces][-1]
            assert isinstance(done, Completion)
            tokens = (*tokens, *done.token_ids)
        return list(tokens)

    try:
        await reply(replace(prompt, prompt_ids=(*picture, *picture, *[50] * (LONGEST - 10))))
    except PromptRefusedError as error:
        refused = str(error)
    await reply(prompt)
    await reply(prompt)
    await reply(replace(prompt, images=prompt.images[::-1]))
    # Everything of vLLM's that may know these pictures; the prompt itself stays.
    engine._llm.reset_prefix_cache()
    engine._llm.reset_mm_cache()
    engine._engine.reset_encoder_cache()
    await reply(prompt)
    turns = await _turns(engine, model, reply, prompt)
    renderings = _renderings(engine, prompt)
    # Where stop words are set, vLLM puts the text together, token by token.
    worded = [(await words(seed, ("never said",)), await words(seed, ())) for seed in range(16)]
    alone = [await talk(number) for number in range(TALKS)]
    crowd = [asyncio.create_task(talk(number)) for number in range(TALKS)]
    left = asyncio.create_task(talk(TALKS))
    await crowd[0]
    left.cancel()
    await asyncio.wait({left})
    whole, step = [0], engine._engine.step

    def failing() -> list[RequestOutput]:
        if whole[0]:
            raise RuntimeError("out of memory")
        outputs = step()
        whole[0] += sum(output.finished for output in outputs if isinstance(output, RequestOutput))
        return [output for output in outputs if isinstance(output, RequestOutput)]

    held = await asyncio.gather(*crowd)
    engine._engine.step = failing  # type: ignore[method-assign,assignment]
    ends = await asyncio.gather(*(words(seed, ()) for seed in range(TALKS)), return_exceptions=True)
    fault = {"whole": whole[0], "ends": [str(end) if isinstance(end, ModelLostError) else "" for end in ends]}
    talks = {"alone": alone, "crowd": held, "left": left.cancelled()}
    told_all = {
        "turns": turns,
        "refused": refused,
        "replies": replies,
        "kept": renderings,
        "words": worded,
        "talks": talks,
        "fault": fault,
    }
    print(json.dumps(told_all), flush=True)


async def _turns(
    engine: ColocatedEngine, model: str, reply: Callable[[TokenRequest], Awaitable[None]], prompt: TokenRequest
) -> dict[str, list[str]]:
    """What happens to the device, in order, while the trainer has its turn, and what is refused meanwhile.

    On a CPU vLLM frees nothing when it sleeps, but its scheduler stops and goes on as on a GPU.
    """
    done: list[str] = []
    refused: list[str] = []

    async def fails(what: Awaitable[None]) -> None:
        try:
            await what
        except VragError as error:
            refused.append(str(error))

    llm = engine._llm
    sleep, wake_up, rpc = llm.sleep, llm.wake_up, llm.collective_rpc

    def slept(level: int) -> None:
        done.append(f"sleep {level}")
        sleep(level=level)

    def woken(tags: list[str]) -> bool:
        whole = wake_up(tags=tags)
        done.append(f"wake {tags[0]}{', whole' if whole else ''}")
        return bool(whole)

    def called(method: str, kwargs: dict[str, object]) -> list[object]:
        done.append(method)
        return list(rpc(method, kwargs=kwargs))

    llm.sleep, llm.wake_up, llm.collective_rpc = slept, woken, called  # type: ignore[method-assign,assignment]
    colocated.release_cached_memory = lambda: done.append("release")
    engine._sleeps = True
    assert await engine.sleep()
    assert await engine.sleep(), "it still sleeps"
    await fails(reply(prompt))
    await fails(engine.wake())
    state = AutoModelForImageTextToText.from_pretrained(model, dtype=torch.float32).state_dict()
    await engine.load_weights(state.items(), "1")
    await fails(reply(prompt))
    await engine.wake()
    await engine.load_weights(state.items(), "2")
    await reply(prompt)
    engine._sleeps = False
    assert not await engine.sleep(), "a CPU has nothing to give"
    llm.sleep, llm.wake_up, llm.collective_rpc = sleep, wake_up, rpc  # type: ignore[method-assign]
    return {"done": done, "refused": refused}


def _renderings(engine: ColocatedEngine, prompt: TokenRequest) -> dict[str, list[int]]:
    """How often vLLM had rendered a prompt after each request, by what was special about it."""
    renderer = engine._engine.renderer
    render, times = renderer.render_cmpl, [0]

    def counted(*prompts: object, skip_mm_cache: bool) -> object:
        times[0] += 1
        return render(*prompts, skip_mm_cache=skip_mm_cache)  # type: ignore[arg-type]

    renderer.render_cmpl = counted  # type: ignore[method-assign,assignment]

    def renders_after(prompts: RenderedPrompts, *requests: TokenRequest) -> list[int]:
        times[0] = 0
        return [times[0] for request in requests if prompts.rendered(request)]

    again = replace(prompt, images=tuple(bytes(bytearray(image)) for image in prompt.images), sampling=Sampling(seed=1))
    words, swapped = TokenRequest((50, 51)), replace(prompt, images=prompt.images[::-1])
    whole = len(RenderedPrompts(renderer).rendered(prompt)["prompt_token_ids"])
    forgetful = RenderedPrompts(renderer)
    seen = renders_after(forgetful, prompt, again, swapped, words, prompt, words)
    forgetful.forget()
    counts = {
        "seen": seen,
        "forgotten": renders_after(forgetful, prompt, prompt),
        "room for both": renders_after(RenderedPrompts(renderer, whole + 2), prompt, words, prompt, words),
        "room for one": renders_after(RenderedPrompts(renderer, whole + 1), prompt, words, words, prompt, prompt),
        "room for none": renders_after(RenderedPrompts(renderer, 1), prompt, prompt, words, words, prompt),
        "the longest unused goes": renders_after(
            RenderedPrompts(renderer, whole + 2), words, prompt, words, swapped, words
        ),
    }
    renderer.render_cmpl = render  # type: ignore[method-assign]
    return counts


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
