"""The version of the package, available to every layer."""

VERSION = "0.1.0"
