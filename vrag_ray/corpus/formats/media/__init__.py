"""Films and sound recordings through PyAV: one clock, the frames, where the picture changes, captions, and speech."""
