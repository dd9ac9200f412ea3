"""A vision-language model of a million parameters for the mosaic world, and what it is taught there first."""
