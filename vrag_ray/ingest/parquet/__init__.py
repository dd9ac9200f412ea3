"""Parquet files whose rows are documents: which rows are taken in together (``layout``), and each with its bytes
(``rows``)."""
