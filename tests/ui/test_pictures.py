"""Pictures are fetched once, and again when they are ten minutes old, whatever the clock showed at first."""

from __future__ import annotations

from tests.support.ui_gateway import DOC_ID, ServedGateway
from ui.pictures import Pictures, Shot
from vrag_ray.client.blocking import Client


def test_a_picture_is_fetched_again_when_it_is_ten_minutes_old(served: ServedGateway) -> None:
    seconds = 599.0
    with Client(served.url) as client:
        pictures = Pictures(client, clock=lambda: seconds)
        first = pictures.get(Shot(DOC_ID, 1))
        seconds = 601.0
        assert pictures.get(Shot(DOC_ID, 1)) == first
        assert len(served.backend.drawn) == 1
        seconds = 1200.0
        pictures.get(Shot(DOC_ID, 1))
        assert len(served.backend.drawn) == 2
