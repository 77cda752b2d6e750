"""The version of the package, which every floor may repeat."""

VERSION = "0.1.0"
