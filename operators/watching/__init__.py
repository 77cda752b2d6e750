"""How a run is watched: its figures as metrics, health, one line in a terminal, and structured logs."""
