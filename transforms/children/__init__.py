"""Child processes: decoders and renderers in a cage, and how they end with their parent."""
