"""Payloads of devices and gateways, each read by its shape: several readings of a device in a message."""
