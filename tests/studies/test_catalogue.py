"""`study.toml` of each study: what `list`, completion and error messages need, without importing the study."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from ciphercost import engines, studies
from ciphercost.load import workloads
from ciphercost.studies import catalogue
from ciphercost.studies.column_functions import procedure, servers
from ciphercost.studies.mysql_openssl import published


def loaded_by(script: str) -> tuple[str, set[str]]:
    """What the script prints, and the studies whose code it loads."""
    ending = """
import sys
print(*sorted({name.split(".")[2] for name in sys.modules if name.startswith("ciphercost.studies.")}))
"""
    done = subprocess.run([sys.executable, "-c", script + ending], capture_output=True, text=True, check=True)
    printed, _, modules = done.stdout.rstrip("\n").rpartition("\n")
    return printed, set(modules.split()) & {catalogue.folder(name) for name in catalogue.names()}


def test_every_study_has_its_file() -> None:
    packages = [module.name for module in pkgutil.iter_modules(studies.__path__) if module.ispkg]
    assert sorted(map(catalogue.folder, catalogue.names())) == sorted(packages)
    assert [studies.get(name).name for name in catalogue.names()] == catalogue.names()


@pytest.mark.parametrize("name", catalogue.names())
def test_what_the_file_names_exists(name: str) -> None:
    entry, study = catalogue.entry(name), studies.get(name)
    assert set(entry.engines) <= set(engines.names())
    for engine in entry.engine.split(","):
        assert engine in entry.engines
        study.check_engine(engine)
    for workload in entry.workloads:
        assert workloads.get(workload).name == workload
    study.configured({})


def test_the_file_agrees_with_the_code() -> None:
    columns = catalogue.entry("column-functions")
    assert (columns.engine, columns.engines) == (servers.ALL, tuple(servers.PAIRS))
    assert columns.workloads == procedure.VERSIONS
    assert catalogue.entry("mysql-openssl").published_server == published.SERVERS["mariadb"]


def test_the_list_of_studies_loads_no_study() -> None:
    printed, loaded = loaded_by("from ciphercost.report import inventory; print(inventory.show('studies'))")
    assert all(name in printed for name in catalogue.names())
    assert loaded == set()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("replicate.chosen('mysql-tsl')", "unknown study 'mysql-tsl': did you mean 'mysql-tls'?"),
        (
            "replicate.chosen('mysql-tls', {'scale': 3})",
            "study mysql-tls has no option --scale, which cybertec-tde-cost, pg-tde-small-cost, postgres-tde and volume-encryption have; leave it out",
        ),
        (
            "replicate.chosen('mysql-tls', {'cpu_crypto': 'on'})",
            "study mysql-tls has no option --cpu-crypto, which column-functions has; leave it out",
        ),
        ("inventory.show('studies', 'mysql-tsl')", "`ciphercost list studies` has no 'mysql-tsl': did you mean 'mysql-tls'?"),
    ],
)  # fmt: skip
def test_an_error_loads_at_most_the_study_that_it_names(call: str, error: str) -> None:
    printed, loaded = loaded_by(f"""
from ciphercost.model.errors import UsageError
from ciphercost.report import inventory
from ciphercost.runs import replicate
try:
    {call}
except UsageError as error:
    print(error)
""")
    assert printed.partition(" (known")[0] == error
    assert loaded <= {"mysql_tls"}
