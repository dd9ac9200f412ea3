"""The picture of a question: added beside the question, looked at, taken away again, sent once.

Nothing here decodes it: the browser shows the file as it is, and the gateway decodes it in its sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ui.inert import plain
from vrag_ray.agent.events import PictureRef
from vrag_ray.client.schemas import MAX_PICTURE_BYTES, data_url
from vrag_ray.views.words import size_in_words

TYPES = ("png", "jpg", "jpeg", "webp")
PREVIEW_PX, SHOWN_PX = 72, 180
_ROUND, _SENT = "picture_round", "picture_sent"


@dataclass(frozen=True, slots=True)
class QuestionPicture:
    """A file as it was chosen. ``problem`` says why it cannot be sent; empty where it can."""

    name: str
    url: str
    size: int
    problem: str = ""


def chosen(name: str, data: bytes) -> QuestionPicture:
    """``data`` as a picture to ask with, as far as its first bytes tell."""
    problem = ""
    if len(data) > MAX_PICTURE_BYTES:
        problem = f"{name} has more than {MAX_PICTURE_BYTES >> 20} MiB: choose a smaller picture."
    elif not _looks_like_a_picture(data):
        problem = f"{name} is no PNG, JPEG or WebP: choose another file."
    return QuestionPicture(name, data_url(data) if not problem else "", len(data), problem)


def picker() -> QuestionPicture | None:
    """The button that adds a picture, and the picture that is added."""
    with st.popover("Add a picture", icon=":material/add_photo_alternate:"):
        file = st.file_uploader(
            "A picture that the question is about",
            type=TYPES,
            key=_key(),
            max_upload_size=MAX_PICTURE_BYTES >> 20,
            help="The first search uses it too, and a vision-language model sees it.",
        )
    return chosen(file.name, file.getvalue()) if file is not None else None


def preview(picture: QuestionPicture) -> None:
    """What will be sent, with a way to take it back."""
    if picture.problem:
        st.error(plain(picture.problem))
    else:
        st.image(picture.url, width=PREVIEW_PX, alt=f"The picture to ask with: {picture.name}")
        st.caption(f"{plain(picture.name)} · {size_in_words(picture.size)}", width="content")
    st.button("Remove the picture", icon=":material/close:", key="remove-picture", on_click=_clear)


def send() -> None:
    """When the question is sent: its picture goes with it, and the next question begins without."""
    file = st.session_state.get(_key())
    st.session_state[_SENT] = data_url(file.getvalue()) if file is not None else None
    _clear()


def sent() -> str | None:
    """The data URL that was sent with the question of this moment."""
    url: str | None = st.session_state.pop(_SENT, None)
    return url


def shown(url: str | None, stored: PictureRef | None) -> None:
    """Below a question that came with a picture: the picture, where this session sent it, else that there was one."""
    if url is not None:
        st.image(url, width=SHOWN_PX, alt="The picture of the question")
    elif stored is not None:
        st.caption(f":material/image: Asked with a picture ({size_in_words(stored.size)}), which is not kept.")


def _looks_like_a_picture(data: bytes) -> bool:
    is_webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    return is_webp or data.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"))


def _key() -> str:
    # A file is taken away by giving the place for it another name.
    return f"picture-{st.session_state.get(_ROUND, 0)}"


def _clear() -> None:
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1
