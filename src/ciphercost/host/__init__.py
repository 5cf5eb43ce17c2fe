"""host: This machine: processes, packages, certificates, ports, volumes, links, CPUs, /proc."""
