"""Makes SIMAT's gallery of crops and its queries (SIMAT, section 3)."""
