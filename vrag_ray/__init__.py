"""Answer questions over PDF pages, slides, images and videos with cited evidence, on Ray."""

__version__ = "0.1.0"
