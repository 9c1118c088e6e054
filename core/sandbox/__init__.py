"""Child processes: caged decoders and renderers, which end with their parent."""
