"""The parts of DOCX, PPTX and XLSX files as web pages, which MuPDF lays out with their tables and headings."""
