"""From logged statements to operations: shapes of statements, transactions, and classes with samples. Pure."""
