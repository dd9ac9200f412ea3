"""What the parent promises whatever the child does."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.documents import decoded, scanned_pdf, text_pdf
from tests.support.hostile_files import giant_png, nested_forms_pdf
from tests.support.patience import HANGS_AFTER_S
from tests.support.processes import children_called
from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.model import DecodeError, KilledError, KillReason, WorkItem
from vrag_ray.corpus.ocr import Reading
from vrag_ray.corpus.sandbox.process import out_of_time
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.corpus.sandbox.wire import HEAD, ReplyBuffer
from vrag_ray.types import DocumentKind, Locator

PDF = DocumentKind.PDF


def child_of_this_process() -> psutil.Process:
    """The youngest decoding child; other tests may keep one of their own."""
    return max(children_called("vrag_ray.corpus.sandbox.child"), key=lambda child: (child.create_time(), child.pid))


def decode(sandbox: Sandbox, path: Path, options, stop: int = 1):
    return decoded(sandbox, path, WorkItem("doc", PDF, 0, stop, "a.pdf"), options)


@contextmanager
def ended_when_busy(how: signal.Signals) -> Iterator[None]:
    """Send ``how`` to the youngest child as soon as it is working."""
    child = child_of_this_process()
    busy_since = sum(child.cpu_times()[:2])

    def end() -> None:
        while sum(child.cpu_times()[:2]) < busy_since + 0.2:
            time.sleep(0.01)
        os.kill(child.pid, how)

    thread = threading.Thread(target=end)
    thread.start()
    yield
    thread.join()


@pytest.fixture
def good(put) -> Path:
    return put("a.pdf", text_pdf(["still here"]))


def test_a_child_that_hangs_is_killed_in_time_and_the_next_decode_works(good, options):
    # Long enough for a healthy child to start beside other tests.
    with Sandbox(DecodeLimits(wall_seconds=10.0)) as sandbox:
        assert decode(sandbox, good, options)[0].text.strip() == "still here"
        hung = child_of_this_process()
        hung.suspend()
        with pytest.raises(
            KilledError, match=r"^a\.pdf: was not decoded within [1-9][\d.]* s, in which it got \d\.\d s"
        ) as caught:
            decode(sandbox, good, options)
        assert caught.value.reason is KillReason.WALL and caught.value.transient
        assert not hung.is_running()
        assert decode(sandbox, good, options)[0].text.strip() == "still here"


def test_a_child_that_burns_cpu_is_ended_by_the_kernel(put, good, options):
    bomb = put("bomb.pdf", nested_forms_pdf())
    with Sandbox(DecodeLimits(cpu_seconds=1, wall_seconds=60.0)) as sandbox:
        with pytest.raises(
            KilledError, match=r"took more than 1 s of CPU .limit corpus\.limits\.cpu_seconds"
        ) as caught:
            decode(sandbox, bomb, options)
        assert caught.value.reason is KillReason.CPU and not caught.value.transient
        assert decode(sandbox, good, options)[0].text.strip() == "still here"


def test_a_child_that_allocates_too_much_memory_is_refused(put, good, options):
    picture = put("big.png", giant_png(7000))
    with Sandbox(DecodeLimits(memory_mb=300)) as sandbox:
        with pytest.raises(KilledError, match=r"needed more than 300 MB of memory") as caught:
            sandbox.render(picture, DocumentKind.IMAGE, Locator(page=1), dpi=150, box=None, max_pixels=10**8)
        assert caught.value.reason is KillReason.MEMORY
        assert sandbox.peak_memory_mb < 300
        assert sandbox.probe(good, "a.pdf").units == 1


def test_a_child_that_crashes_is_an_error_and_the_next_decode_works(put, good, options):
    bomb = put("bomb.pdf", nested_forms_pdf())
    with Sandbox(DecodeLimits(cpu_seconds=60, wall_seconds=60.0)) as sandbox:
        decode(sandbox, good, options)
        crashes = pytest.raises(KilledError, match=r"^a\.pdf: crashed the decoder .SIGSEGV")
        with ended_when_busy(signal.SIGSEGV), crashes as caught:
            decode(sandbox, bomb, options)
        assert caught.value.reason is KillReason.CRASH and not caught.value.transient
        assert decode(sandbox, good, options)[0].text.strip() == "still here"


def test_a_child_that_the_system_ends_is_no_fault_of_the_file(put, good, options):
    bomb = put("bomb.pdf", nested_forms_pdf())
    with Sandbox(DecodeLimits(cpu_seconds=60, wall_seconds=60.0)) as sandbox:
        decode(sandbox, good, options)
        ended = pytest.raises(KilledError, match=r"ended from outside .SIGKILL")
        with ended_when_busy(signal.SIGKILL), ended as caught:
            decode(sandbox, bomb, options)
        assert caught.value.transient


def test_wall_time_is_a_multiple_of_cpu_time():
    limits = DecodeLimits(cpu_seconds=7, ocr_seconds=9)
    assert (limits.wall_limit_s, limits.ocr_wall_limit_s) == (70, 90)
    assert DecodeLimits(cpu_seconds=7, wall_seconds=3).wall_limit_s == 3


@pytest.mark.parametrize(("cpu_s", "transient"), [(0.0, True), (9.9, True), (10.1, False)])
def test_a_decode_that_got_little_cpu_is_worth_another_try_and_one_that_got_much_is_not(cpu_s, transient):
    error = out_of_time(200.0, cpu_s, granted_s=20)
    assert error.transient is transient
    assert f"within 200 s, in which it got {cpu_s} s of CPU" in str(error)
    assert ("limit corpus.limits.wall_seconds" in str(error)) is not transient


def test_an_error_keeps_what_it_says_on_its_way_through_ray():
    error = pickle.loads(pickle.dumps(KilledError("a.pdf: was ended", KillReason.CRASH, transient=True)))
    assert (str(error), error.reason, error.transient) == ("a.pdf: was ended", KillReason.CRASH, True)


def test_a_child_that_died_between_two_calls_is_replaced_unseen(good, options):
    with Sandbox(DecodeLimits()) as sandbox:
        decode(sandbox, good, options)
        dead = child_of_this_process()
        dead.kill()
        # Its first thread is a zombie before the last one has closed the pipe; this waits for the last.
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        assert decode(sandbox, good, options)[0].text.strip() == "still here"


def test_a_stream_that_is_left_early_does_not_confuse_the_next_call(put, no_ocr):
    path = put("a.pdf", text_pdf(["one", "two", "three"]))
    with Sandbox(DecodeLimits()) as sandbox:
        for unit in sandbox.stream(path, WorkItem("doc", PDF, 0, 3, "a.pdf"), no_ocr):
            assert unit.text.strip() == "one"
            break
        assert [unit.text.strip() for unit in decode(sandbox, path, no_ocr, 3)] == ["one", "two", "three"]


def test_the_child_ends_with_its_parent(good):
    program = (
        "import sys, os, psutil; from pathlib import Path; from vrag_ray.config import DecodeLimits\n"
        "from vrag_ray.corpus.sandbox.sandbox import Sandbox\n"
        "s = Sandbox(DecodeLimits()); s.probe(Path(sys.argv[1]), 'a.pdf')\n"
        "print(psutil.Process().children()[0].pid, flush=True); os.kill(os.getpid(), 9)"
    )
    parent = subprocess.run([sys.executable, "-c", program, str(good)], stdout=subprocess.PIPE, check=False)
    assert parent.returncode == -signal.SIGKILL
    try:
        orphan = psutil.Process(int(parent.stdout))
    except psutil.NoSuchProcess:
        return
    orphan.wait(timeout=HANGS_AFTER_S)


def test_a_relative_path_is_the_parents(good, monkeypatch):
    monkeypatch.chdir(good.parent)
    with Sandbox(DecodeLimits()) as sandbox:
        assert sandbox.probe(Path(good.name), "a.pdf").units == 1


def test_a_path_that_is_not_utf8_is_read(put):
    path = put("a.txt", b"still here").with_name(os.fsdecode(b"caf\xe9.txt"))
    path.write_bytes(b"still here")
    with Sandbox(DecodeLimits()) as sandbox:
        assert sandbox.probe(path, path.name).title == "caf%E9"
        with pytest.raises(DecodeError, match=r"^caf%E9\.txt: .* has no picture"):
            sandbox.render(path, DocumentKind.TEXT, Locator(span_start=0), dpi=20, box=None, max_pixels=10**6)


def test_closing_leaves_no_process_behind(good):
    sandbox = Sandbox(DecodeLimits())
    sandbox.probe(good, "a.pdf")
    child = child_of_this_process()
    sandbox.close()
    sandbox.close()
    assert not child.is_running()


def test_a_call_is_stopped_from_another_thread_and_later_ones_are_refused(good, options):
    with Sandbox(DecodeLimits()) as sandbox, ThreadPoolExecutor(1) as pool:
        assert decode(sandbox, good, options)[0].text.strip() == "still here"
        hung = child_of_this_process()
        hung.suspend()
        waiting = pool.submit(sandbox.probe, good, "a.pdf")
        sandbox.stop()
        with pytest.raises(DecodeError):
            waiting.result(HANGS_AFTER_S)
        assert not hung.is_running()
        with pytest.raises(DecodeError, match=r"^a\.pdf: not read: the decoder was stopped$"):
            sandbox.probe(good, "a.pdf")


def test_the_child_sees_no_secret_and_writes_no_file(good, monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    with Sandbox(DecodeLimits()) as sandbox:
        sandbox.probe(good, "a.pdf")
        child = child_of_this_process()
        assert "SOME_API_KEY" not in child.environ()
        assert child.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
        assert child.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        assert child.rlimit(psutil.RLIMIT_AS) == (2048 << 20, 2048 << 20)


def test_the_first_child_of_an_installation_stores_bytecode_and_later_ones_use_it(good, monkeypatch, tmp_path):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    with Sandbox(DecodeLimits()) as sandbox:
        sandbox.probe(good, "a.pdf")
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.pyc")}
    assert {"mupdf", "pdf_text"} <= {path.name.split(".")[0] for path in stored}
    with Sandbox(DecodeLimits()) as sandbox:
        sandbox.probe(good, "a.pdf")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.pyc")} == stored

    # An upgrade of this package alone leaves PyMuPDF's.
    ours = {path for path in stored if "formats" in path.parts}
    for path in ours:
        path.unlink()
    with Sandbox(DecodeLimits()) as sandbox:
        sandbox.probe(good, "a.pdf")
    assert {path for path in tmp_path.rglob("*.pyc") if "formats" in path.parts} == ours


def libraries_after_a_probe(path):
    with Sandbox(DecodeLimits()) as sandbox:
        sandbox.probe(path, path.name)
        maps = Path(f"/proc/{child_of_this_process().pid}/maps").read_text()
    return {name for name in ("mupdf", "onnxruntime", "libav", "decord", "numpy") if name in maps}


def test_a_text_child_does_not_load_the_heavy_libraries(put):
    assert not libraries_after_a_probe(put("a.txt", b"hello"))


def test_a_child_that_opens_a_pdf_loads_no_library_beside_those_that_read_it(good):
    assert libraries_after_a_probe(good) == {"mupdf", "numpy"}


@pytest.mark.parametrize(
    ("module", "library"),
    [
        ("vrag_ray.corpus.sandbox.child", "pydantic_settings"),
        ("vrag_ray.corpus.formats.pdf", "mammoth"),
        ("vrag_ray.corpus.formats.laid_out", "selectolax"),
    ],
)
def test_a_child_does_not_load_the_settings_of_the_service_or_the_readers_of_other_formats(module, library):
    program = f"import sys; import {module}; sys.exit({library!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_file_larger_than_allowed_is_not_even_opened(put):
    path = put("a.txt", b"x" * (2**20 + 1))
    with (
        Sandbox(DecodeLimits(max_file_mb=1)) as sandbox,
        pytest.raises(DecodeError, match=r"corpus\.limits\.max_file_mb"),
    ):
        sandbox.probe(path, "a.txt")


LIAR = """#!{python}
import sys
from vrag_ray.corpus.model import DecodedUnit
from vrag_ray.corpus.sandbox.wire import DoneReply, PictureReply, UnitReply, pack, read_request, read_start
from vrag_ray.types import Locator, PassageKind
read_start(sys.stdin.buffer)
read_request(sys.stdin.buffer)
sys.stdout.buffer.write({lie})
sys.stdout.buffer.flush()
sys.stdin.buffer.read()
"""


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ("pack(UnitReply(unit=DecodedUnit(5, PassageKind.PAGE, Locator(page=1))))", "out of turn at unit 0"),
        ("pack(UnitReply(unit=DecodedUnit(0, PassageKind.TEXT, Locator(page=1))))", "out of turn at unit 0"),
        ("pack(PictureReply(), b'GIF89a')", "out of turn at unit 0"),
        ("pack(DoneReply())", "out of turn at unit 0"),
        (
            "pack(UnitReply(unit=DecodedUnit(0, PassageKind.PAGE, Locator(page=1)))) * 2",
            "more units than were requested",
        ),
        ("b'\\xff' * 8", "longer than allowed"),
        ("b'\\0\\0\\0\\2\\0\\0\\0\\0{{]'", "malformed"),
        ("b'\\x80\\x04\\x95 a pickle, perhaps'", "longer than allowed"),
    ],
)
def test_a_child_that_lies_is_found_out_and_replaced(good, options, tmp_path, monkeypatch, lie, reason):
    script = tmp_path / "liar"
    script.write_text(LIAR.format(python=sys.executable, lie=lie))
    script.chmod(0o700)
    with Sandbox(DecodeLimits(wall_seconds=20.0)) as sandbox:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(script))
            with pytest.raises(DecodeError, match=reason):
                decode(sandbox, good, options)
        assert decode(sandbox, good, options)[0].text.strip() == "still here"


def test_a_box_outside_the_page_is_not_believed():
    bad = b'{"reply":"unit","unit":{"unit":0,"kind":"page","locator":{"page":1},"words":[{"text":"x","box":%s}]}}'
    buffer = ReplyBuffer(100)
    body = bad % b'{"x0":0,"y0":0,"x1":2,"y1":1}'
    buffer.feed(HEAD.pack(len(body), 0) + body)
    with pytest.raises(DecodeError, match="malformed"):
        buffer.take()


def test_replies_may_arrive_in_any_cut():
    body = b'{"reply":"picture","t":1.5}'
    frame = HEAD.pack(len(body), 3) + body + b"png"
    buffer = ReplyBuffer(100)
    seen = []
    for byte in frame * 2:
        buffer.feed(bytes([byte]))
        if (reply := buffer.take()) is not None:
            seen.append(reply[1])
    assert seen == [b"png", b"png"]


def test_a_picture_that_was_read_before_is_not_read_again(put, options, tmp_path, caplog):
    options = replace(options, ocr_cache=str(tmp_path / "ocr"))
    path = put("scan.pdf", scanned_pdf(["Invoice number 4711"]))
    item = WorkItem("", DocumentKind.PDF, 0, 1)
    with Sandbox(DecodeLimits(wall_seconds=120.0)) as sandbox:
        (first,) = sandbox.stream(path, item, options)
        assert "4711" in first.text
        (entry,) = [path for path in (tmp_path / "ocr").rglob("*") if path.is_file()]
        # What lies in the cache is what is read; another child reads it too.
        entry.write_bytes(entry_with(entry.read_bytes(), "4711", "0815"))
        (again,) = sandbox.stream(path, item, options)
        assert "0815" in again.text
    with Sandbox(DecodeLimits(wall_seconds=120.0)) as sandbox:
        assert "0815" in sandbox.page_text(path, DocumentKind.PDF, Locator(page=1), options).text
        # Rubbish is read over.
        entry.write_bytes(b"rubbish")
        assert "4711" in sandbox.page_text(path, DocumentKind.PDF, Locator(page=1), options).text
        assert Reading.from_bytes(entry.read_bytes()) is not None
        # A cache that cannot be written costs the cache, and a warning.
        blocked = replace(options, ocr_cache=str(path))
        assert "4711" in sandbox.page_text(path, DocumentKind.PDF, Locator(page=1), blocked).text
        assert "what OCR reads is not cached" in caplog.text


def entry_with(entry: bytes, old: str, new: str) -> bytes:
    reading = Reading.from_bytes(entry)
    assert reading is not None
    lines = tuple(replace(line, text=line.text.replace(old, new)) for line in reading.lines)
    return replace(reading, lines=lines).to_bytes()
