"""What can be read on a page in Streamlit's own harness, and runs that ended before a page was opened."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.support.ui_gateway import Told
from vrag_ray.client.http import Client
from vrag_ray.client.schemas import RunRequest

RUN = "run-0001"


def texts(app: AppTest) -> str:
    """What can be read, without what keeps it from being more than words."""
    shown = [*app.markdown, *app.caption, *app.warning, *app.error, *app.info, *app.text]
    return "\n".join(str(element.value) for element in shown).replace("\\", "").replace("\N{WORD JOINER}", "")


def finished(told: Told, run_id: str = RUN, question: str = "How many?") -> None:
    with Client(told.url) as client:
        list(client.ask(RunRequest(question=question, run_id=run_id)))
