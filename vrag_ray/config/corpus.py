"""How documents are decoded, become passages, and are taken in."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from vrag_ray.config.section import Choice, Section

WALL_FACTOR = 10
"""A decode may take this many times its CPU seconds: on a busy machine a process gets a small share of a core."""
OFFICE_WALL_FACTOR = 5
"""The same of a conversion, which is granted more CPU seconds."""


class DecodeLimits(Section):
    """What one decode of untrusted bytes may cost before its child process is killed."""

    memory_mb: int = Field(default=2048, ge=1)
    """Address space of the child. Measured peaks: PDF text 0.3 GB, OCR of a page 1.2 GB, of a 50 Mpx picture 1.7 GB."""
    cpu_seconds: int = Field(default=20, ge=1)
    """CPU time of one unit. It depends on the file alone; a busy machine does not spend it."""
    wall_seconds: float | None = Field(default=None, gt=0)
    """Wall time of one unit, against a decoder that hangs. None: ten times ``cpu_seconds``."""
    ocr_seconds: int = Field(default=60, ge=1)
    """CPU seconds added for each picture of a unit that is read by OCR; ten times as many seconds of wall time."""
    office_seconds: int = Field(default=120, ge=1)
    """CPU time in which LibreOffice converts one file; ``office_wall_seconds`` is the wall time, against one that
    hangs."""
    office_wall_seconds: float | None = Field(default=None, gt=0)
    """None: five times ``office_seconds``."""
    max_pixels: int = Field(default=50_000_000, ge=1)
    """Of a picture, and of a frame of a video: a larger one is refused."""
    max_pages: int = Field(default=20_000, ge=1)
    """Of a document, and clips of a video: a longer one is refused."""
    max_frames: int = Field(default=32, ge=1)
    """Of a clip that a model is shown, at most."""
    max_file_mb: int = Field(default=2048, ge=1)
    """A larger file is refused."""
    max_text_mb: int = Field(default=200, ge=1)
    """Of a text file, which is read whole; its words take about 0.07 s of CPU a megabyte."""
    max_text_chars_per_page: int = Field(default=200_000, ge=1)
    """The text of a page is cut there, with a notice."""

    @property
    def wall_limit_s(self) -> float:
        """Seconds of wall time for a unit without OCR."""
        return self.cpu_seconds * WALL_FACTOR if self.wall_seconds is None else self.wall_seconds

    @property
    def ocr_wall_limit_s(self) -> float:
        """Seconds of wall time for each picture that is read by OCR."""
        return self.ocr_seconds * WALL_FACTOR

    @property
    def office_wall_limit_s(self) -> float:
        """Seconds of wall time for one conversion by LibreOffice."""
        return (
            self.office_seconds * OFFICE_WALL_FACTOR if self.office_wall_seconds is None else self.office_wall_seconds
        )


class OfficeUse(Choice):
    """Whether office files are laid out by LibreOffice."""

    AUTO = "auto"
    OFF = "off"


class CorpusConfig(Section):
    """How documents become passages."""

    limits: DecodeLimits = DecodeLimits()
    office: OfficeUse = OfficeUse.AUTO
    """``auto``: by LibreOffice where it is installed. ``off``: DOCX, PPTX and XLSX are laid out anew, and older office
    files and those of OpenDocument are refused, as where it is not installed."""
    window_words: int = Field(default=150, ge=20)
    """Words of one passage, which has one vector."""
    window_overlap: int = Field(default=0, ge=0)
    """Words that a passage shares with the one before."""
    pages_per_item: int = Field(default=16, ge=1)
    """Pages that one task of ingest decodes."""
    clip_seconds: float = Field(default=60.0, gt=0)
    """Length of the clips that a video or a recording is cut into."""
    video_fps: float = Field(default=1.0, gt=0)
    """Frames of a second of a clip that a model is shown, up to `limits.max_frames`."""
    ocr: bool = True
    """Read the words of scans, pictures and films."""
    ocr_dpi: int = Field(default=150, ge=36, le=1200)
    """Resolution at which a page is drawn for OCR."""
    ocr_min_chars: int = Field(default=8, ge=0)
    """A page or image whose own text is shorter than this is read by OCR."""
    ocr_cache_mb: int = Field(default=512, ge=0)
    """Size of the cache of what OCR read, by the picture's content, on each machine that reads documents: in
    `$VRAG_CACHE_HOME`, or else in `vrag-ray` in `$XDG_CACHE_HOME` or `~/.cache`. 0: nothing is cached."""
    speech_model: str = ""
    """The folder, or the id on Hugging Face, of a Whisper model for faster-whisper (extra `speech`), which reads the
    speech of sound recordings and of videos without subtitles. Empty: speech is not read, and a notice says so."""

    @model_validator(mode="after")
    def _windows_advance(self) -> Self:
        if self.window_overlap >= self.window_words:
            raise ValueError(f"window_overlap {self.window_overlap} must be below window_words {self.window_words}")
        return self


class IngestConfig(Section):
    """How the Ray Data graphs are sized."""

    concurrency: int | None = Field(default=None, ge=1)
    """Embedding actors of each space that does not set ``actors``. With it few files are done by actors too."""
    commit_pages: int = Field(default=128, ge=1)
    """Pages after which ingest commits what it has: a killed ingest goes on from there."""
    retry_errors: bool = False
    """Decode documents again that an earlier run could not read, or not wholly."""
    strict: bool = False
    """End with exit code 1 where a document could not be read."""
    prune: bool = False
    """Remove the documents whose files are no longer in the folders that are ingested."""
    content_column: str | None = None
    """Of Parquet files whose rows are documents: the column that holds them. None: detected by name and type."""
