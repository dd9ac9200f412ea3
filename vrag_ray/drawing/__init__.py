"""Drawing documents: pages, charts, and sheets as cameras and scanners see them. For corpora that the project makes."""
