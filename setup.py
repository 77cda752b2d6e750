"""The packages below the root, found by their folders; all else about the project is in pyproject.toml."""

from setuptools import find_packages, setup

FLOORS = ("sketches", "sampling", "operators", "spark_udafs", "queries", "agents", "apps", "spark")

folders = find_packages(include=[pattern for floor in FLOORS for pattern in (floor, f"{floor}.*")])
setup(packages=["streamgauge", *(f"streamgauge.{name}" for name in folders)])
