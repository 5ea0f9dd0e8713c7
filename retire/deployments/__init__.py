"""Deployments: one fixed model configuration each, behind one protocol."""

from retire.deployments.port import Deployment, DeploymentFault
from retire.deployments.registry import deployment_named, known_deployments

__all__ = ["Deployment", "DeploymentFault", "deployment_named", "known_deployments"]
