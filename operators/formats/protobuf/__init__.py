"""Protobuf messages, by compiled classes, descriptors or .proto files."""
