"""Queries and questions of known gold, from PDFs, benchmarks and files."""
