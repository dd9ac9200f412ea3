"""Pictures and their pixels: frames of reference, sizes that models see, times at which videos are looked at."""
