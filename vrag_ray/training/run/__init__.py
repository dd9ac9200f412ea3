"""Where a training run keeps everything: its folder, on a disk or in an object store."""
