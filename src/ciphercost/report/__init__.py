"""report: A result for people: figures, words, plots, formats, comparison, advice, progress."""
