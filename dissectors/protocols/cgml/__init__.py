"""CGML: licitovaný mariáš, played over XML elements."""
