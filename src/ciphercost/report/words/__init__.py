"""The texts that every report prints, independent of format and width."""
