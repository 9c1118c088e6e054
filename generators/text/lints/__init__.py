"""Find defects that make text pairs unusable, in published sets and in eqforge's own."""
