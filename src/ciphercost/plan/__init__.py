"""plan: From what was asked for to what will be done: specs checked, targets, matrix, schedule. Starts nothing."""
