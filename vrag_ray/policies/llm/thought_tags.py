"""Thoughts that a server leaves in the text of a reply, between the tags of its model. Pure.

``<think>`` is not among them: it belongs to the protocols of the agents, which read it themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

TAGS = {
    "<thought>": "</thought>",
    "<thinking>": "</thinking>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
}
"""Begin and end: of Gemma and Gemini, of prompts in Anthropic's manner, of Seed-OSS, Magistral and gpt-oss."""


@dataclass(slots=True)
class TaggedThoughts:
    """Text goes in as it comes; what is certain comes out at once. Thoughts are looked for at the very beginning."""

    _held: str = ""
    _end: str = ""
    """Of the thoughts that have begun."""
    _over: bool = False
    _drops_breaks: bool = False

    def feed(self, text: str) -> tuple[str, str]:
        """Thoughts and content."""
        self._held += text
        if not self._over and not self._end:
            bare = self._held.lstrip()
            begin = next((tag for tag in TAGS if bare.startswith(tag)), "")
            if begin:
                self._held, self._end = bare[len(begin) :], TAGS[begin]
            elif any(tag.startswith(bare) for tag in TAGS):
                return "", ""
            else:
                self._over = True
        if self._over:
            return "", self._content()
        thoughts, end, after = self._held.partition(self._end)
        if end:
            self._held, self._over, self._drops_breaks = after, True, True
            return thoughts, self._content()
        pending = next(size for size in range(len(self._end) - 1, -1, -1) if thoughts.endswith(self._end[:size]))
        certain = len(thoughts) - pending
        self._held = thoughts[certain:]
        return thoughts[:certain], ""

    def end(self) -> tuple[str, str]:
        """What was held back; no more text comes."""
        held, self._held = self._held, ""
        return (held, "") if self._end and not self._over else ("", held)

    def _content(self) -> str:
        # Line breaks after thoughts belong to the form.
        text = self._held.lstrip("\n") if self._drops_breaks else self._held
        self._drops_breaks = self._drops_breaks and not text
        self._held = ""
        return text
