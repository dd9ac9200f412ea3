"""The library page: what the collection holds, how to add to it, and how to take something out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from ui import gateway
from ui.inert import plain
from vrag_ray.client.schemas import DocumentInfo, FileState, IngestJob, JobState
from vrag_ray.types import DocumentStatus, VragError
from vrag_ray.views.words import counted, size_in_words

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

_KINDS = """
pdf docx pptx xlsx doc ppt xls odt odp ods rtf
html htm epub mobi fb2 xps cbz svg png jpg jpeg webp tif tiff bmp gif jp2 heic avif
mp4 mkv webm mov avi m4v 3gp ts mpg mpeg flv ogv wmv mp3 wav m4a ogg flac
txt md json jsonl log rst yaml xml csv tsv eml msg
"""
SUFFIXES = _KINDS.split()
LOOK_EVERY_S = 0.5
UNITS = {"pdf": "page", "image": "picture", "video": "clip", "text": "piece"}
_STATUS = {
    DocumentStatus.READY: ":material/check_circle: ready",
    DocumentStatus.PARTIAL: ":material/warning: in part",
    DocumentStatus.ERROR: ":material/error: not readable",
}


def page() -> None:
    state = gateway.state()
    st.title("Library")
    if not state.usable:
        return
    collection = _collection(state.collections)
    listed, total, version = gateway.documents(collection)
    _numbers(listed, total, version)
    _add(collection)
    st.subheader("Documents")
    if not listed:
        st.info("Nothing here yet: drop files above.")
    for document in listed:
        _document(document, collection)
    if total > len(listed):
        st.caption(f"The first {len(listed)} of {total} are shown.")


def _collection(served: Sequence[str]) -> str:
    """The one that is looked at, where there are several."""
    if len(served) < 2:
        return ""
    return st.selectbox("Collection", served, format_func=plain, key="collection")


def _numbers(listed: Sequence[DocumentInfo], total: int, version: int) -> None:
    kinds = Counter(document.kind.value for document in listed)
    pages = sum(document.units for document in listed)
    broken = sum(document.status is not DocumentStatus.READY for document in listed)
    row = st.container(horizontal=True)
    row.metric("Documents", f"{total:,}")
    row.metric("Pages, pictures, clips", f"{pages:,}")
    row.metric("Size", size_in_words(sum(document.size_bytes for document in listed)))
    row.metric("With problems", f"{broken:,}")
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    st.caption(f"{counts or 'empty'} · collection version {version}")


def _add(collection: str) -> None:
    st.subheader("Add")
    with st.form("upload", clear_on_submit=True, border=False):
        st.file_uploader("Files", SUFFIXES, accept_multiple_files=True, key="files")
        # A callback runs even where another request to draw the page follows at once, and its result is in the session:
        # what the run of a click draws is gone with the next run.
        st.form_submit_button(
            "Add to the library", icon=":material/upload:", on_click=_upload, args=(collection,), key="add"
        )
    if hint := st.session_state.get("upload_hint"):
        st.info(hint)
    if refusal := st.session_state.get("upload_refusal"):
        st.error(refusal)
    if st.session_state.get("jobs"):
        _jobs()


def _upload(collection: str) -> None:
    """Send the chosen files; a message stays until the next try."""
    files: Sequence[UploadedFile] = st.session_state.get("files") or ()
    st.session_state.upload_refusal = ""
    st.session_state.upload_hint = "" if files else "Choose at least one file first."
    if not files:
        return
    try:
        job = gateway.client().upload([(file.name, file) for file in files], collection=collection)
    except VragError as error:
        st.session_state.upload_refusal = f"The upload was refused: {plain(str(error))}"
        return
    st.session_state.setdefault("jobs", []).append((job.job_id, [file.name for file in files]))


@st.fragment(run_every=LOOK_EVERY_S)
def _jobs() -> None:
    """How far each upload is. Looks again by itself; when one is done the page is drawn anew."""
    for job_id, names in list(st.session_state.jobs):
        try:
            job = gateway.client().job(job_id)
        except VragError as error:
            st.warning(f"The upload is lost from sight: {plain(str(error))}")
            continue
        _job(job, names)
        seen: set[str] = st.session_state.setdefault("jobs_done", set())
        if job.finished and job_id not in seen:
            seen.add(job_id)
            gateway.forget_documents()
            st.rerun(scope="app")


def _job(job: IngestJob, names: Sequence[str]) -> None:
    title = plain(", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""))
    match job.state:
        case JobState.QUEUED:
            st.progress(0.0, text=f"{title}: waiting")
        case JobState.RUNNING:
            done = job.done_pages / job.total_pages if job.total_pages else 0.0
            rate = f", {job.pages_per_s:.1f} pages/s" if job.pages_per_s else ""
            left = f", {job.eta_s:.0f} s left" if job.eta_s is not None else ""
            st.progress(min(1.0, done), text=f"{title}: {job.done_pages} of {job.total_pages or '?'} pages{rate}{left}")
        case JobState.DONE:
            st.progress(1.0, text=f"{title}: {len(job.documents)} of {len(names)} searchable, {job.done_pages} pages")
        case JobState.FAILED:
            st.error(f"{title}: {plain(job.error)}")
    if job.state is JobState.RUNNING and len(job.files) > 1:
        for file in job.files:
            st.caption(f"{plain(file.name)}: {_pages(file)}")
    for problem in job.errors:
        # Most errors name their file already.
        message = problem.error if problem.name in problem.error else f"{problem.name}: {problem.error}"
        st.error(plain(message), icon=":material/error:")
    for notice in job.notices:
        st.info(f"{plain(notice.name)}: {plain(notice.notice)}", icon=":material/info:")


def _pages(file: FileState) -> str:
    if file.total_pages is None:
        return "waiting"
    return f"{file.done_pages} of {file.total_pages} pages read" if file.total_pages else "nothing to read"


def _document(document: DocumentInfo, collection: str) -> None:
    with st.container(border=True, key=f"document-{document.doc_id[:16]}"):
        name, facts, button = st.columns([5, 4, 1], vertical_alignment="center")
        name.markdown(f"**{plain(document.title)}**")
        name.caption(plain(", ".join(uri.rpartition("/")[2] for uri in document.uris)))
        kind = document.kind.value
        readable = (
            "" if document.status is DocumentStatus.ERROR else f" · {kind} · {counted(document.units, UNITS[kind])}"
        )
        facts.markdown(_STATUS[document.status] + readable)
        facts.caption(f"{size_in_words(document.size_bytes)} · added {document.added_at[:10]}")
        if document.error:
            st.caption(f":material/error: {plain(document.error)}")
        for notice in document.notices:
            st.caption(f":material/info: {plain(notice)}")
        # Kept in the session, as with uploads: the page may be drawn again at once.
        button.button(
            "Delete",
            key=f"delete-{document.doc_id}",
            icon=":material/delete:",
            help=f"Delete {document.title}",
            on_click=_choose,
            args=(document.doc_id,),
        )
        if st.session_state.get("deleting") == document.doc_id:
            _confirm(document, collection)


def _choose(doc_id: str = "") -> None:
    """The document whose deletion is to be confirmed; none."""
    st.session_state.deleting = doc_id


@st.dialog("Delete this document?", on_dismiss=_choose)
def _confirm(document: DocumentInfo, collection: str) -> None:
    st.markdown(f"**{plain(document.title)}** will not be found any more. This cannot be undone.")
    if st.button("Delete it", type="primary", key="confirm-delete"):
        try:
            gateway.client().delete_document(document.doc_id, collection=collection)
        except VragError as error:
            st.error(f"It could not be deleted: {plain(str(error))}")
            return
        _choose()
        gateway.forget_documents()
        st.rerun()
