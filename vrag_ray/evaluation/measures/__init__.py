"""What results are worth: rank measures, measures of answers, gold places."""
