"""Payloads of devices and gateways, recognised by their shape: a message may have several readings."""
