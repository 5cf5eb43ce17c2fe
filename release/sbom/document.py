"""A CycloneDX document: built from packages, rendered with the same bytes each time, checked against the schema."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

SCHEMA = SchemaVersion.V1_6


@dataclass
class Package:
    """One package. `kind`: the package's type in its purl, as in pkg:cargo/libc@0.2.1. `licence`: an SPDX expression."""

    kind: str
    name: str
    version: str
    licence: str | None = None
    group: str | None = None
    sha256: str | None = None
    cpe: str | None = None
    shipped: bool = True
    """Whether it is in the product; otherwise it only takes part in the build."""
    needs: list[str] = field(default_factory=list)
    """Purls of other packages of the document."""

    @property
    def purl(self) -> str:
        return str(PackageURL(self.kind, self.group, self.name, self.version))

    def component(self, kind: ComponentType = ComponentType.LIBRARY) -> Component:
        return Component(
            name=self.name,
            version=self.version,
            group=self.group,
            type=kind,
            bom_ref=self.purl,
            purl=PackageURL.from_string(self.purl),
            cpe=self.cpe,
            scope=ComponentScope.REQUIRED if self.shipped else ComponentScope.EXCLUDED,
            licenses=[LicenseFactory().make_from_string(self.licence)] if self.licence else None,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=self.sha256)] if self.sha256 else None,
        )


def rendered(product: Package, packages: Iterable[Package], tools: dict[str, str], facts: dict[str, str]) -> str:
    """The document as JSON.

    `tools`: name -> version of what built the product. `facts`: further properties of the document. Its time is
    SOURCE_DATE_EPOCH, or now. Raises KeyError if a package needs one that the document lacks.
    """
    bom = Bom(serial_number=UUID(int=0), properties=[Property(name=name, value=facts[name]) for name in sorted(facts)])
    now = os.environ.get("SOURCE_DATE_EPOCH")
    bom.metadata.timestamp = datetime.fromtimestamp(int(now), UTC) if now else datetime.now(UTC)
    bom.metadata.component = product.component(ComponentType.APPLICATION)
    for name, version in tools.items():
        bom.metadata.tools.components.add(Component(name=name, version=version, type=ComponentType.APPLICATION))
    components = {each.purl: each.component() for each in packages}
    bom.components = components.values()
    bom.register_dependency(bom.metadata.component, [components[purl] for purl in product.needs])
    for each in packages:
        bom.register_dependency(components[each.purl], [components[purl] for purl in each.needs])
    # The number has to be the document's own: it is made from everything else in it.
    bom.serial_number = uuid5(NAMESPACE_URL, _json(bom))
    return _json(bom)


def _json(bom: Bom) -> str:
    return make_outputter(bom, OutputFormat.JSON, SCHEMA).output_as_string(indent=2) + "\n"


def invalid(text: str) -> str | None:
    """What is wrong with this document according to CycloneDX's schema, or None."""
    try:
        version: Any = json.loads(text)["specVersion"]
    except (ValueError, KeyError, TypeError):
        return "not a CycloneDX document: JSON with a specVersion was expected"
    if version != SCHEMA.to_version():
        return f"CycloneDX {version}; expected {SCHEMA.to_version()}"
    found = JsonStrictValidator(SCHEMA).validate_str(text)
    # The rest of the message quotes the schema.
    return None if found is None else str(found.data).partition("\n")[0]
