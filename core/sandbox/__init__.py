"""Child processes: sandboxed decoders and renderers, which end with their parent."""
