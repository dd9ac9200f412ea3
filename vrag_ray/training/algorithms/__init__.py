"""Policy-gradient algorithms: from graded runs to what each segment is credited with. Pure functions."""
