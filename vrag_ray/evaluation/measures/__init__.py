"""What results are worth: rank measures and measures of answers."""
