"""How good searches and answers are, in the field's own measures: suites, runs that can be resumed, comparisons."""
