"""host: everything about this machine: processes, packages, certificates, ports, volumes, links, CPUs, /proc."""
