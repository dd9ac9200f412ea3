"""``streamlit run ui/app.py``, or `vrag ui`: the pages, and the banner above them."""

from __future__ import annotations

import streamlit as st
from PIL import Image, ImageDraw

from ui import ask, gateway, library, runs
from ui.banner import banner
from ui.boxes import OUTLINE
from ui.inert import plain
from vrag_ray.types import VragError

NAME = "vrag"
ICON_PX = 32
# Pages are white on white: what the theme file cannot say.
BORDER = "<style>[data-testid=stImage] img:not([alt^='Memory graph']) { border: 1px solid #8883; }</style>"


def icon() -> Image.Image:
    """A page with a box on it."""
    drawn = Image.new("RGBA", (ICON_PX, ICON_PX), (0, 0, 0, 0))
    pen = ImageDraw.Draw(drawn)
    pen.rounded_rectangle((5, 1, 26, 30), 3, fill="white", outline="#0b6e99", width=2)
    pen.rectangle((9, 12, 22, 20), outline=OUTLINE, width=3)
    return drawn


def main() -> None:
    # A named icon would be fetched from its maker's server.
    st.set_page_config(page_title=NAME, page_icon=icon(), layout="wide")
    st.html(BORDER)
    pages = [
        st.Page(ask.page, title="Ask", icon=":material/forum:", url_path="ask", default=True),
        st.Page(library.page, title="Library", icon=":material/library_books:", url_path="library"),
        st.Page(runs.page, title="Runs", icon=":material/history:", url_path="runs"),
    ]
    st.session_state.ask_page = pages[0]
    page = st.navigation(pages, position="top")
    banner(gateway.state().usable)
    try:
        page.run()
    except VragError as error:
        # The gateway went away, or refused, after it was last looked at: the banner sees it within seconds.
        gateway.forget_state()
        st.error(f"This page could not be drawn: {plain(str(error))}")


main()
