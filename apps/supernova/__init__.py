"""Supernova candidates: alert packets of ZTF and Rubin, published cuts, each object reported once."""
