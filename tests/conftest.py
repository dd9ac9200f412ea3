"""What all tests share: one small local Ray, started when the first test asks for it."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import pytest
from hypothesis import settings

from tests.support.object_store import Bucket, served_bucket
from vrag_ray.cluster import ENVIRONMENT, stop_ray
from vrag_ray.ha_proxy import choose_ha_proxy

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

    from tests.support.stubbed_service import StubbedService

if "PYTEST_XDIST_WORKER" in os.environ:
    # Two processes whose matrices take all cores each would wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# How long an example takes says nothing on a busy machine. The same examples in each run: a run that fails is one that
# the next one repeats. `make test-all` draws new ones (--hypothesis-profile=explore).
settings.register_profile("vrag", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("vrag")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
# What each Ray does beside its work: look for new log files ten times a second, and measure every process.
os.environ.setdefault("RAY_LOG_MONITOR_MANY_FILES_THRESHOLD", "0")
os.environ.setdefault("LOG_NAME_UPDATE_INTERVAL_S", "5")
os.environ.setdefault("REPORTER_UPDATE_INTERVAL_MS", "60000")
# As ``start_ray`` has them: on a busy machine, workers that are nicer than the tests starve, and slow proxies are
# killed.
for name in ("RAY_worker_niceness", "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S"):
    os.environ.setdefault(name, ENVIRONMENT[name])
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Requests to an object store are signed, in every process of Ray too; the one of the tests takes any key.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "tests")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "tests")


# Collecting makes millions of objects that stay: looking for garbage among them takes as long as all the rest.
gc.disable()

TOGETHER = (
    "tests/training",
    "tests/vllm",
    "tests/e2e/learning",
    "tests/documentation",
    "tests/ui",
    "tests/serving/service",
)
"""Folders whose tests share what is dear to start: an engine, a Ray with a trained model. One process runs them all.

In the order in which they begin: the longest first, so that two processes end at about the same time.
"""
WITH_THE_INTERFACE = ("tests/compat/test_programs.py", "tests/e2e/test_vimrag.py")
"""Files that use the demo collection as the tests of the web interface do: it is ingested once for all of them."""


def pytest_configure(config: pytest.Config) -> None:
    """What a run caches is its own, and its processes share it."""
    if "VRAG_CACHE_HOME" not in os.environ:
        os.environ["VRAG_CACHE_HOME"] = folder = tempfile.mkdtemp(prefix="vrag-cache-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        # No test connects by TLS, and each client of HTTP reads all authorities: 40 ms.
        os.environ.setdefault("SSL_CERT_FILE", first_authority(Path(folder)))


def first_authority(folder: Path) -> str:
    """A file with a single certificate of those that clients trust."""
    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0]
    file = folder / "authority.pem"
    file.write_text(first + end, encoding="utf-8")
    return str(file)


def together(nodeid: str) -> str:
    """What runs in one process: a file, or a folder that shares more than that."""
    file = nodeid.partition("::")[0]
    if file in WITH_THE_INTERFACE:
        return "tests/ui"
    return next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # After plugins that shuffle: what is shared is begun and ended once in any order.
    places = {folder: place for place, folder in enumerate(TOGETHER)}
    files: dict[Path, int] = {}
    for number, item in enumerate(items):
        files.setdefault(item.path, number)
    items.sort(
        key=lambda item: (
            places.get(together(item.nodeid), len(places)),
            is_served_on_ray(item),
            files[item.path],
            place_in_file(item),
        )
    )


def is_served_on_ray(item: pytest.Item) -> bool:
    """In a folder whose tests run on two services, one after the other, each is begun and ended once."""
    return hasattr(item, "callspec") and item.callspec.params.get("service") == "on Ray"


def place_in_file(item: pytest.Item) -> int:
    """Where ``in_file`` puts it: before or after the others."""
    mark = item.get_closest_marker("in_file")
    return 0 if mark is None else {"first": -1, "last": 1}[mark.args[0]]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    # Libraries look for what they leak as the process ends.
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """How ``-n`` deals tests out to processes."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatIsShared(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    return ByWhatIsShared(config, log)


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Ray with more logical CPUs than the machine has, because actors here ask for fractions of one."""
    import ray

    # Unix socket paths have a length limit that pytest's own folders would break.
    folder = tempfile.mkdtemp(prefix="vrag-ray-")
    started = not ray.is_initialized()
    if started:
        choose_ha_proxy()
        ray.init(
            num_cpus=16,
            include_dashboard=False,
            object_store_memory=300 << 20,
            _temp_dir=folder,
            logging_level="WARNING",
            log_to_driver=False,
        )
    yield
    if started:
        stop_ray()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def demo_collection(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection of the demo corpus."""
    from tests.support.stubbed_service import demo_collection

    return demo_collection(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def stubbed_service(demo_collection: Path) -> Iterator[StubbedService]:
    """A service over the demo corpus."""
    from tests.support.stubbed_service import serving_from_a_script

    with serving_from_a_script(demo_collection) as service:
        yield service


@pytest.fixture(scope="session")
def bucket() -> Iterator[Bucket]:
    """A bucket behind a real S3 endpoint on this machine."""
    with served_bucket() as bucket:
        yield bucket
