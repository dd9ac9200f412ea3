"""What can be read on a page in Streamlit's own harness, and runs that ended before a page was opened."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S
from tests.support.ui_gateway import ServedGateway
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest

APP = str(ROOT / "ui" / "app.py")
RUN = "run-0001"


def opened_page(**query: str) -> AppTest:
    """The ask page, at an address with ``query``."""
    app = AppTest.from_file(APP, default_timeout=HANGS_AFTER_S)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def pictures_on(app: AppTest) -> list[str]:
    """What stands for each picture where it cannot be seen; thumbnails and the graph left out."""
    names = [image.alt for element in app.get("image") for image in element.proto.imgs]
    return [name for name in names if not name.startswith(("Thumbnail", "Memory graph", "Closer look"))]


def texts(app: AppTest) -> str:
    """What can be read, without what keeps it from being more than words."""
    shown = [*app.markdown, *app.caption, *app.warning, *app.error, *app.info, *app.text]
    whole = [str(element.value) for element in shown] + [element.proto.body for element in app.get("html")]
    return "\n".join(whole).replace("\\", "").replace("\N{WORD JOINER}", "")


def finished(served: ServedGateway, run_id: str = RUN, question: str = "How many?") -> None:
    with Client(served.url) as client:
        list(client.events(RunRequest(question=question, run_id=run_id)))
