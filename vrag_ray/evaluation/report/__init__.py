"""An evaluation as one HTML file that needs nothing else."""
