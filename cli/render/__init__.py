"""Renderers of tables and charts, as text and as SVG."""
