"""What a finished run is worth: rewards, the judge, and the grader that brings them together."""
