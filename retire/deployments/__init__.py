"""Deployments: one fixed model configuration each, behind one protocol."""

from retire.deployments.port import (
    EVIDENCE_OF_PROVIDER,
    Call,
    Completion,
    Deployment,
    DeploymentFault,
    Served,
)
from retire.deployments.registry import EMBEDDED, Catalog

__all__ = [
    "EMBEDDED",
    "EVIDENCE_OF_PROVIDER",
    "Call",
    "Catalog",
    "Completion",
    "Deployment",
    "DeploymentFault",
    "Served",
]
