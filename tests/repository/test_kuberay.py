"""The KubeRay manifest follows the schema of KubeRay's RayCluster, and nothing in it is misspelt."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((Path(__file__).parent / "kuberay" / "raycluster.schema.json").read_text())
"""Of the custom resource definition, pruned by tools/kuberay_schema.py; its title has version and licence."""
MANIFEST: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "kuberay.yml").read_text())


def test_the_manifest_follows_the_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft7Validator(SCHEMA).validate(MANIFEST)
    assert MANIFEST["apiVersion"] == "ray.io/v1"
    assert MANIFEST["kind"] == "RayCluster"


def test_each_worker_has_a_machine_of_its_own_and_the_head_measures_nothing() -> None:
    spec = MANIFEST["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = spec["workerGroupSpecs"]
    template = group["template"]
    (term,) = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"] == template["metadata"]["labels"]
    (container,) = template["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert group["replicas"] == group["minReplicas"] == group["maxReplicas"]


def _misspelt(of: dict[str, Any]) -> None:
    of["spec"]["workerGroupSpecs"][0]["replicaz"] = 3


def _text(of: dict[str, Any]) -> None:
    of["spec"]["workerGroupSpecs"][0]["replicas"] = "3"


def _deep(of: dict[str, Any]) -> None:
    of["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["volumeMount"] = []


def _missing(of: dict[str, Any]) -> None:
    del of["spec"]["workerGroupSpecs"][0]["groupName"]


def _number(of: dict[str, Any]) -> None:
    of["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_misspelt, "'replicaz' was unexpected"),
        (_text, "'3' is not of type 'integer'"),
        (_deep, "'volumeMount' was unexpected"),
        (_missing, "'groupName' is a required property"),
        (_number, "0 is not of type 'string'"),
    ],
)
def test_a_wrong_manifest_is_refused(change: Callable[[dict[str, Any]], None], words: str) -> None:
    wrong = copy.deepcopy(MANIFEST)
    change(wrong)
    with pytest.raises(jsonschema.ValidationError, match=words):
        jsonschema.Draft7Validator(SCHEMA).validate(wrong)
