"""Supernova candidates: alert packets of ZTF and Rubin, published cuts, objects told once."""
