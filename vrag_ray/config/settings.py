"""The whole configuration of one process. Values come from YAML, then from ``VRAG_*`` environment variables.

``VRAG_INGEST__COMMIT_PAGES=64`` overrides ``ingest.commit_pages``; nested names are joined by two underscores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from vrag_ray.config.agent import AgentConfig
from vrag_ray.config.corpus import CorpusConfig, IngestConfig
from vrag_ray.config.embedding import MINILM, NO_MODEL, RerankerConfig, SpaceConfig, with_text_space
from vrag_ray.config.index import IndexConfig
from vrag_ray.config.model import OpenAiConfig, VllmConfig
from vrag_ray.config.section import refuse_switch, without_empty
from vrag_ray.config.serving import ServingConfig
from vrag_ray.config.setting_names import NESTED, PREFIX, fault_of, refuse_unknown_variables
from vrag_ray.config.yaml_file import read_yaml
from vrag_ray.types import DENSE, HYBRID, LEXICAL, TEXT, VragError
from vrag_ray.types.collection_names import own_name

CollectionName = Annotated[str, StringConstraints(pattern=r"^[^\s/,*?#&][^/,*?#&]{0,63}$")]


class Settings(BaseSettings):
    """The whole configuration of one process."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter=NESTED,
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    gpus: int | None = Field(default=None, ge=0)
    """Most GPUs that are taken where a part's own setting does not say so. None: those that are free; 0: no part uses a
    GPU, whatever its own setting is."""
    collection: str = "vrag-collection"
    """Folder or URI of the collection."""
    collections: dict[CollectionName, str] = {}
    """More collections that are served beside ``collection``, by the names that requests call them. Where a request
    names none, ``collection`` is meant, whose own name is that of its folder."""
    corpus: CorpusConfig = CorpusConfig()
    embedder: dict[str, object] | None = None
    """The older form of ``spaces.text``: it is accepted with a notice."""
    spaces: dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")], SpaceConfig] = {}
    """Vector spaces by name: ingest fills them, and search has a leg for each. A space that a collection has is
    searched without being named here, by the settings that it was made with. The space ``text`` is filled without being
    named too, by ``minilm``, unless ``spaces.text.model`` is ``none``."""
    reranker: RerankerConfig | None = None
    """None: results stay in the order of the search."""
    ingest: IngestConfig = IngestConfig()
    index: IndexConfig = IndexConfig()
    agent: AgentConfig = AgentConfig()
    openai: OpenAiConfig | None = None
    """One of this and ``vllm`` at most."""
    vllm: VllmConfig | None = None
    """One of this and ``openai`` at most."""
    serving: ServingConfig = ServingConfig()

    @property
    def served(self) -> dict[str, str]:
        """Folder or URI of each collection by name, ``collection`` first, which ``collections`` may give a name too.

        Raises VragError where two have one name.
        """
        given = next((name for name, root in self.collections.items() if root == self.collection), None)
        main = given or own_name(self.collection)
        if given is None and main in self.collections:
            raise VragError(
                f"two collections are called {main}, {self.collection} and {self.collections[main]}: give the second "
                "another name under `collections`"
            )
        return {main: self.collection, **self.collections}

    @property
    def language_model(self) -> OpenAiConfig | VllmConfig | None:
        """Behind an endpoint, or served on this cluster; None: agents answer by rules."""
        return self.openai or self.vllm

    def device_of(self, configured: str) -> str:
        """The device of a model whose own setting is ``configured``: the CPU, where ``gpus`` is 0."""
        return "cpu" if self.gpus == 0 else configured

    @property
    def filled_spaces(self) -> dict[str, SpaceConfig]:
        """The spaces that an ingest fills, by name: that of the texts first."""
        texts = {TEXT: self.spaces.get(TEXT, SpaceConfig(model=MINILM))} if self.texts_are_embedded else {}
        return texts | {name: config for name, config in self.spaces.items() if name != TEXT}

    @property
    def texts_are_embedded(self) -> bool:
        """Whether there is a space ``text``; without it texts are searched by their words only."""
        return TEXT not in self.spaces or self.spaces[TEXT].model != NO_MODEL

    @model_validator(mode="before")
    @classmethod
    def _with_text_space(cls, values: object) -> object:
        values = without_empty(cls.model_fields, values)
        return with_text_space(values) if isinstance(values, Mapping) else values

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_as_number(cls, value: object, info: ValidationInfo) -> object:
        refuse_switch(cls.model_fields, value, info)
        return value

    @model_validator(mode="after")
    def _single_language_model(self) -> Settings:
        if self.openai is not None and self.vllm is not None:
            raise ValueError(
                f"both openai ({self.openai.model}) and vllm ({self.vllm.model}) name the language model: set one of "
                "them, in the file or as VRAG_OPENAI__… or VRAG_VLLM__…, and leave the other out"
            )
        return self

    @field_validator("collection")
    @classmethod
    def _has_a_place(cls, collection: str) -> str:
        if not collection.strip():
            raise ValueError("it is empty: name a folder or a URI")
        return collection

    @field_validator("spaces")
    @classmethod
    def _no_mode_as_a_name(cls, spaces: dict[str, SpaceConfig]) -> dict[str, SpaceConfig]:
        for name in (HYBRID, LEXICAL, DENSE):
            if name in spaces:
                raise ValueError(f"a space cannot be called {name}, which is a mode of search: choose another name")
        without = [name for name, config in spaces.items() if name != TEXT and config.model == NO_MODEL]
        if without:
            raise ValueError(f"{without[0]}: the model {NO_MODEL} is for the space {TEXT} alone: leave the space out")
        return spaces

    @classmethod
    def settings_customise_sources(  # the signature is pydantic's
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over what a YAML file or a caller passes in."""
        return env_settings, init_settings


def load_settings(path: Path | None = None) -> Settings:
    """Read ``path`` (YAML, optional) under the environment. Errors name the file and the field."""
    refuse_unknown_variables(Settings, os.environ)
    values: object = {}
    if path is not None:
        values = read_yaml(path) or {}
        if not isinstance(values, dict):
            raise VragError(f"the configuration {path} must be a mapping of names to values")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        fault = fault_of(Settings, error)
        raise VragError(f"the configuration {path or '(environment)'} is wrong at {fault}") from error
