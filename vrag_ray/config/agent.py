"""What one run of an agent may spend, and what it is given of pages."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import Field, field_validator, model_validator

from vrag_ray.config.section import Choice, Section
from vrag_ray.types import FamilyName
from vrag_ray.types.file_names import expanded


class AgentName(StrEnum):
    """Agents by the name that a request gives."""

    EXTRACTIVE = "extractive"
    VIMRAG = "vimrag"
    VRAG = "vrag"


class Instruction(Section):
    """The first instruction of a model, from a file in place of the built-in text. A path alone is read at once, so
    that the text travels with the settings to every process."""

    file: str
    text: str

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        file = value.get("file") if isinstance(value, dict) and "text" not in value else value
        return {"file": str(file), "text": _text_of(str(file))} if isinstance(file, str | Path) else value


def _text_of(file: str) -> str:
    """Without the newline with which editors end a file."""
    try:
        text = expanded(file).read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8: write the instruction anew in that encoding") from error
    if not text.strip():
        raise ValueError(f"{file} is empty: write the instruction into it, or leave the setting out")
    return text.removesuffix("\n").removesuffix("\r")


class EvidenceForm(StrEnum):
    """What a language model is given of a page that was found. A text document is given in words in every form."""

    PICTURE = "picture"
    TEXT = "text"
    """Its words, those that OCR read included, and no picture: for models without eyes."""
    BOTH = "both"
    """Its picture, and its words beside it: small print can be read without a crop."""

    @property
    def has_pictures(self) -> bool:
        return self is not EvidenceForm.TEXT

    @property
    def has_text(self) -> bool:
        return self is not EvidenceForm.PICTURE


class Marks(Choice):
    """What a language model is given to point at parts of a page with: the numbers of its elements."""

    OFF = "off"
    WORDS = "words"
    """The words of a page come element by element, each behind its number (``[12] Net sales rose``)."""
    MARGIN = "margin"
    """So do its words, where they are given, and the numbers stand beside its picture: in margins that the picture is
    extended by, at the height of their elements. Nothing of the page is hidden."""
    BOXES = "boxes"
    """So do its words, where they are given, and its elements are outlined in its picture, each with its number."""

    @property
    def on_pictures(self) -> bool:
        return self in (Marks.MARGIN, Marks.BOXES)


class AgentConfig(Section):
    """Budgets of one run."""

    instruction: dict[AgentName, Instruction] = Field(default={})
    """A file for each agent whose instruction is not to be the built-in one, as that of a released checkpoint. In that
    of ``vrag``, ``{question}`` stands for the question, which else follows it; in that of ``vimrag``, ``{tools}`` for
    the list of its tools."""
    evidence: EvidenceForm = EvidenceForm.PICTURE
    """What a language model is given of found pages. ``extractive`` reads words in any case."""
    marks: Marks = Marks.WORDS
    """Numbers of the elements of pages, by which they are cited with their boxes. ``words``: before their words, with
    ``evidence`` ``text`` or ``both``. ``margin`` and ``boxes``: on pictures too, with ``picture`` or ``both``; pages
    are then read, and the margins are a part of the pixels of a picture. ``vrag`` has none with an instruction of your
    own, ``vimrag`` none with one that lacks ``{tools}``."""
    result_chars: int = Field(default=4_000, ge=300)
    """With ``evidence`` ``text`` or ``both``: most characters of one result's words. Longer ones are cut around the
    passage that matched, and say so."""
    memory_chars: int = Field(default=6_000, ge=0)
    """Of the words of all remembered items together, shared by their energy."""
    prompt_chars: int = Field(default=24_000, ge=300)
    """Of all words of pages in one prompt, those of the memory included."""
    max_steps: int = Field(default=12, ge=2)
    """Replies of one run; at the last one only an answer is accepted."""
    search_top_k: int = Field(default=3, ge=1, le=50)
    """Results of one search of an agent."""
    deadline_s: float = Field(default=600.0, gt=0)
    """Of one run. A model on a CPU takes up to a minute a reply."""
    memory_top_k: int = Field(default=5, ge=0)
    """Remembered pictures that a prompt shows, those of the highest energy."""
    memory_pixels: int = Field(default=5 * 256 * 32 * 32, ge=0)
    """Of all remembered pictures of a prompt together."""
    token_budget: int | None = Field(default=None, ge=1)
    """Tokens read and written in one run; once they are spent, only an answer is accepted."""
    energy_decay: float = Field(default=0.1, ge=0)
    """How fast the energy of a remembered item decays with its age in nodes: by ``exp(-energy_decay)`` each."""
    energy_feedback: float = Field(default=0.3, ge=0, le=1)
    """Share of the mean energy of its children that a node of the memory graph gains."""
    family: FamilyName | None = None
    """Of the model: its patches, and how it writes boxes. None: as the configuration of a served model
    says; of an endpoint's, Qwen3-VL for ``vimrag`` and Qwen2.5-VL for ``vrag``."""
    picture_pixels: int = Field(default=1280 * 28 * 28, ge=1)
    """Most pixels of a found picture."""
    frame_pixels: int = Field(default=128 * 32 * 32, ge=1)
    """Most pixels of a frame of a found video."""
    max_reply_tokens: int = Field(default=2048, ge=16)
    """Of one reply of the model, thoughts and all."""
    constrained: bool = True
    """Hold the model to replies that are possible at each step, where its server can: vLLM, llama.cpp, and endpoints
    that take a JSON schema."""
    entailment: bool = False
    """Ask the language model of each sentence of an answer whose facts stand in its sources whether those say it: one
    short reply a sentence. A sentence that they do not say is ``unsupported``."""
    tags_results: int = Field(default=1, ge=1)
    """Pages that ``vrag`` is shown a search; the released checkpoint was trained on one."""
    abstain_below: float = Field(default=0.5, ge=0, le=1)
    """Evidence below this share of the question's informative words (IDF-weighted) is not an answer."""

    @field_validator("instruction")
    @classmethod
    def _of_a_model(cls, instruction: dict[AgentName, Instruction]) -> dict[AgentName, Instruction]:
        if AgentName.EXTRACTIVE in instruction:
            raise ValueError("extractive asks no model and has no instruction: name vimrag or vrag")
        return instruction

    def instruction_of(self, agent: AgentName) -> str:
        """The text that replaces the built-in instruction; "" where none does."""
        given = self.instruction.get(agent)
        return given.text if given is not None else ""

    @model_validator(mode="after")
    def _marks_need_pictures(self) -> AgentConfig:
        if self.marks.on_pictures and not self.evidence.has_pictures:
            raise ValueError(
                f"marks {self.marks} draws numbers on pictures, but evidence {self.evidence} shows none: set marks to "
                f"{Marks.WORDS}, or evidence to {EvidenceForm.BOTH}"
            )
        return self

    @model_validator(mode="after")
    def _a_result_fits_beside_the_memory(self) -> AgentConfig:
        if self.result_chars + self.memory_chars > self.prompt_chars:
            raise ValueError(
                f"result_chars {self.result_chars} + memory_chars {self.memory_chars} > prompt_chars "
                f"{self.prompt_chars}: raise prompt_chars or lower the others"
            )
        return self
