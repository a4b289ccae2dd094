"""Operating system services: child signals, processor cores, ports and the clock."""
