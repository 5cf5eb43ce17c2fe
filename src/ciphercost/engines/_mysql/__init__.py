"""_mysql: what MySQL and MariaDB have in common. No engine itself."""
