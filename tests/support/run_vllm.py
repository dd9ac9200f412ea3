"""Runs vLLM on a saved model and one picture; prints one JSON line on the last line of stdout.

Usage: run_vllm.py MODEL_FOLDER PICTURE PROMPT TOKENS. A program of its own, so that vLLM's threads, signal handlers
and log settings stay out of the test process.
"""

from __future__ import annotations

import json
import sys

from PIL import Image


def main(model: str, picture: str, prompt: str, tokens: int) -> None:
    from vllm import LLM, SamplingParams

    llm = LLM(
        model=model,
        dtype="float32",
        max_model_len=256,
        max_num_seqs=2,
        enforce_eager=True,
        limit_mm_per_prompt={"image": 1, "video": 0},
        seed=0,
    )
    request = {"prompt": prompt, "multi_modal_data": {"image": Image.open(picture).convert("RGB")}}
    tokenizer = llm.get_tokenizer()
    # A sampled image token would ask for a second picture; log-probs are taken before this mask.
    plain = sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))
    sampling = SamplingParams(
        max_tokens=tokens, temperature=1.0, seed=7, logprobs=0, ignore_eos=True, allowed_token_ids=plain
    )
    result = llm.generate([request], sampling, use_tqdm=False)[0]
    output = result.outputs[0]
    assert output.logprobs is not None
    record = {
        "prompt_ids": list(result.prompt_token_ids or ()),
        "token_ids": list(output.token_ids),
        "logprobs": [step[token].logprob for step, token in zip(output.logprobs, output.token_ids, strict=True)],
        "finish_reason": output.finish_reason,
    }
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
