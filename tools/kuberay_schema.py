"""Prune the schema of KubeRay's RayCluster to what docs/kuberay.yml uses, for tests/repository/test_kuberay.py.

    go mod download -json github.com/ray-project/kuberay/ray-operator@v1.5.0
    python tools/kuberay_schema.py DIR/config/crd/bases/ray.io_rayclusters.yaml v1.5.0

Descriptions are left out. A field that the manifest does not use keeps its name and loses its schema, so that a misspelt field is
still unknown. Run it again after a change of the manifest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "docs" / "kuberay.yml"
TARGET = ROOT / "tests" / "repository" / "kuberay" / "raycluster.schema.json"
SOURCE = "config/crd/bases/ray.io_rayclusters.yaml of github.com/ray-project/kuberay/ray-operator"


def pruned(schema: dict[str, Any], used: Any) -> dict[str, Any]:
    """The schema of what `used`, a part of the manifest, has. Pure."""
    kept = {
        name: value
        for name, value in schema.items()
        if name not in ("description", "properties", "items", "additionalProperties")
    }
    if "properties" in schema:
        own = used if isinstance(used, dict) else {}
        kept["properties"] = {
            name: pruned(each, own[name]) if name in own else {} for name, each in schema["properties"].items()
        }
        kept["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields", False))
    elif isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = pruned(schema["additionalProperties"], None)
    if "items" in schema:
        found: dict[str, Any] = {}
        for each in used if isinstance(used, list) else []:
            found = merged(found, each)
        kept["items"] = pruned(schema["items"], found)
    return kept


def merged(one: Any, other: Any) -> Any:
    """What either of two elements of a list uses. Pure."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: merged(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *other]
    return other if one is None else one


def main(path: str, version: str) -> None:
    """Write the pruned schema."""
    crd = yaml.safe_load(Path(path).read_text())
    schema = next(each for each in crd["spec"]["versions"] if each["name"] == "v1")["schema"]["openAPIV3Schema"]
    manifest = yaml.safe_load(MANIFEST.read_text())
    made = {"title": f"RayCluster ray.io/v1, pruned from {SOURCE} {version}, Apache-2.0"} | pruned(schema, manifest)
    # Every object has metadata, which the CRD leaves to Kubernetes.
    made["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
