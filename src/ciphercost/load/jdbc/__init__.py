"""jdbc: Load by a JDBC driver: which driver, its options, the Java agent, and who verified the server."""
