"""Deployments: one fixed model configuration each, behind one protocol."""

from retire.deployments.port import Call, Completion, Deployment, DeploymentFault, Served
from retire.deployments.registry import EMBEDDED, Catalog

__all__ = [
    "EMBEDDED",
    "Call",
    "Catalog",
    "Completion",
    "Deployment",
    "DeploymentFault",
    "Served",
]
