"""Making load: the agent and its protocol, programs of statements, workloads, tables, JDBC."""
